// npu_mhc_sinkhorn and its gradient: each lane has a token's matrix.
#pragma once

#include "mhc_kernels.h"
#include "wide.h"

namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA {
namespace {

using custom_pypto_mhc::SinkhornTask;

// The numbers of a row of norm and sum.
inline constexpr int64_t kRow = 8;

// The matrices of up to kWidth tokens of a task, [token, token + count).
template <class Number, int kStreams>
class Matrices {
 public:
  using Vector = VectorOf<Number>;
  static constexpr int64_t kWidth = Wide<Number>::kWidth;
  static constexpr int kElements = kStreams * kStreams;
  using Sums = Number[kStreams][kWidth];

  Matrices(const SinkhornTask& task, int64_t token)
      : task_(task),
        token_(token),
        count_(task.tokens - token < kWidth ? task.tokens - token : kWidth) {}

  // From matrices [tokens, n, n]. Lanes without a token are zero.
  void read(const void* from) {
    for (int64_t lane = 0; lane < count_; ++lane) {
      const Number* matrix = at<Number>(from, (token_ + lane) * kElements);
      for (int i = 0; i < kElements; ++i) numbers_[i][lane] = matrix[i];
    }
  }

  void write(void* to) const {
    for (int64_t lane = 0; lane < count_; ++lane) {
      Number* matrix = at<Number>(to, (token_ + lane) * kElements);
      for (int i = 0; i < kElements; ++i) matrix[i] = numbers_[i][lane];
    }
  }

  void softmax() {
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int row = 0; row < kElements; row += kStreams) {
        Number most = numbers_[row][lane];
        for (int i = row; i < row + kStreams; ++i) {
          most = numbers_[i][lane] > most ? numbers_[i][lane] : most;
        }
        Number sum = 0;
        for (int i = row; i < row + kStreams; ++i) {
          sum += numbers_[i][lane] = exponential(numbers_[i][lane] - most);
        }
        for (int i = row; i < row + kStreams; ++i) numbers_[i][lane] /= sum;
      }
    }
  }

  void add(Number eps) {
    for (int i = 0; i < kElements; ++i) put(i, CUSTOM_PYPTO_CPU_ISA::add(get(i), spread(eps)));
  }

  // Divides each column (or row) by its sum + eps.
  void normalise(bool is_column, Number eps, Sums& sums) {
    const int step = is_column ? kStreams : 1;
    const int next = is_column ? 1 : kStreams;
    for (int j = 0; j < kStreams; ++j) {
      Vector sum = get(j * next);
      for (int i = 1; i < kStreams; ++i) {
        sum = CUSTOM_PYPTO_CPU_ISA::add(sum, get(j * next + i * step));
      }
      sum = CUSTOM_PYPTO_CPU_ISA::add(sum, spread(eps));
      store(sums[j], sum);
      const Vector factor = divide(spread(Number{1}), sum);
      for (int i = 0; i < kStreams; ++i) {
        put(j * next + i * step, multiply(get(j * next + i * step), factor));
      }
    }
  }

  // The gradient before normalise(), of the gradient after it.
  void undo(bool is_column, const Matrices& result, const Sums& sums) {
    const int step = is_column ? kStreams : 1;
    const int next = is_column ? 1 : kStreams;
    for (int j = 0; j < kStreams; ++j) {
      Vector dot{};
      for (int i = 0; i < kStreams; ++i) {
        const int place = j * next + i * step;
        dot = multiply_add(get(place), result.get(place), dot);
      }
      const Vector factor = divide(spread(Number{1}), load(sums[j]));
      for (int i = 0; i < kStreams; ++i) {
        const int place = j * next + i * step;
        put(place, multiply(subtract(get(place), dot), factor));
      }
    }
  }

  void multiply_by(const Matrices& other) {
    for (int i = 0; i < kElements; ++i) put(i, multiply(get(i), other.get(i)));
  }

  void keep(int64_t step) const {
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int row = 0; row < kStreams; ++row) {
        Number* to = norm_at(step, row, lane);
        for (int i = 0; i < kStreams; ++i) to[i] = numbers_[row * kStreams + i][lane];
        for (int64_t i = kStreams; i < kRow; ++i) to[i] = 0;
      }
    }
  }

  void read_norm(int64_t step) {
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int row = 0; row < kStreams; ++row) {
        const Number* from = norm_at(step, row, lane);
        for (int i = 0; i < kStreams; ++i) numbers_[row * kStreams + i][lane] = from[i];
      }
    }
  }

  void keep_sums(int64_t step, const Sums& sums) const {
    for (int64_t i = 0; i < kRow; ++i) {
      const Number rest = step % 2 == 0 ? 1 : 0;
      for (int64_t lane = 0; lane < count_; ++lane) {
        *sum_at(step, i, lane) = i < kStreams ? sums[i][lane] : rest;
      }
    }
  }

  void read_sums(int64_t step, Sums& sums) const {
    for (int64_t i = 0; i < kStreams; ++i) {
      for (int64_t lane = 0; lane < count_; ++lane) sums[i][lane] = *sum_at(step, i, lane);
    }
  }

 private:
  Vector get(int i) const { return load(numbers_[i]); }
  void put(int i, Vector x) { store(numbers_[i], x); }

  Number* norm_at(int64_t step, int64_t row, int64_t lane) const {
    return at<Number>(task_.norm, ((step * kStreams + row) * task_.tokens + token_ + lane) * kRow);
  }

  // Even steps are of rows, odd ones of columns.
  Number* sum_at(int64_t step, int64_t i, int64_t lane) const {
    const int64_t place =
        step % 2 == 0 ? i * task_.tokens + token_ + lane : (token_ + lane) * kRow + i;
    return at<Number>(task_.sum, step * kRow * task_.tokens + place);
  }

  const SinkhornTask& task_;
  int64_t token_;
  int64_t count_;
  alignas(64) Number numbers_[kElements][kWidth] = {};
};

template <class Number, int kStreams>
void sinkhorn(const SinkhornTask& task) {
  using Tokens = Matrices<Number, kStreams>;
  const Number eps = static_cast<Number>(task.eps);
  alignas(64) typename Tokens::Sums sums;
  for (int64_t token = 0; token < task.tokens; token += Tokens::kWidth) {
    Tokens matrices(task, token);
    matrices.read(task.x);
    matrices.softmax();
    for (auto& row : sums) {
      for (Number& each : row) each = 1;
    }
    for (int64_t step = 0; step < 2 * task.iterations; ++step) {
      if (step > 0) matrices.normalise(step % 2 == 1, eps, sums);
      if (task.norm != nullptr) {
        matrices.keep(step);
        matrices.keep_sums(step, sums);
      }
      if (step == 0) matrices.add(eps);
    }
    matrices.write(task.y);
  }
}

template <class Number, int kStreams>
void sinkhorn_grad(const SinkhornTask& task) {
  using Tokens = Matrices<Number, kStreams>;
  alignas(64) typename Tokens::Sums sums;
  for (auto& row : sums) {
    for (Number& each : row) each = 1;
  }
  for (int64_t token = 0; token < task.tokens; token += Tokens::kWidth) {
    Tokens grad(task, token);
    Tokens result(task, token);
    grad.read(task.x);
    for (int64_t step = 2 * task.iterations - 1; step > 0; --step) {
      result.read_norm(step);
      grad.read_sums(step, sums);
      grad.undo(step % 2 == 1, result, sums);
    }
    // The softmax: its rows are divided by 1 here, and multiplied by themselves.
    for (auto& row : sums) {
      for (Number& each : row) each = 1;
    }
    result.read_norm(0);
    grad.undo(false, result, sums);
    grad.multiply_by(result);
    grad.write(task.y);
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
