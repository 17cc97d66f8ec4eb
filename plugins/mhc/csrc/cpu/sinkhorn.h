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

  // Of matrices [tokens, n, n]. Lanes without a token are zero.
  void read(const void* from) {
    read_rows([&](int row, int64_t lane) { return matrix_at(from, row, lane); });
  }
  void write(void* to) const {
    write_rows([&](int row, int64_t lane) { return matrix_at(to, row, lane); });
  }

  // Of the task's norm.
  void read_norm(int64_t step) {
    read_rows([&](int row, int64_t lane) { return norm_at(step, row, lane); });
  }
  void keep(int64_t step) const {
    write_rows([&](int row, int64_t lane) {
      Number* const to = norm_at(step, row, lane);
      for (int64_t i = kStreams; i < kRow; ++i) to[i] = 0;
      return to;
    });
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
    for (int j = 0; j < kStreams; ++j) {
      const auto place = [&](int i) { return is_column ? i * kStreams + j : j * kStreams + i; };
      Vector sum = get(place(0));
      for (int i = 1; i < kStreams; ++i) sum = CUSTOM_PYPTO_CPU_ISA::add(sum, get(place(i)));
      sum = CUSTOM_PYPTO_CPU_ISA::add(sum, spread(eps));
      store(sums[j], sum);
      // 1 / sum overflows if sum is subnormal: there, sum and elements are scaled, which is exact.
      alignas(64) Number scales[kWidth];
      bool is_scaled = false;
      for (int64_t lane = 0; eps < Wide<Number>::kLeast && lane < kWidth; ++lane) {
        const bool is_subnormal = sums[j][lane] < Wide<Number>::kLeast;
        scales[lane] = is_subnormal ? Wide<Number>::kScale : 1;
        is_scaled |= is_subnormal;
      }
      const auto scaled = [&](Vector x) { return is_scaled ? multiply(x, load(scales)) : x; };
      const Vector factor = divide(spread(Number{1}), scaled(sum));
      for (int i = 0; i < kStreams; ++i) put(place(i), multiply(scaled(get(place(i))), factor));
    }
  }

  // The gradient before normalise(), of the gradient after it.
  void undo(bool is_column, const Matrices& result, const Sums& sums) {
    for (int j = 0; j < kStreams; ++j) {
      const auto place = [&](int i) { return is_column ? i * kStreams + j : j * kStreams + i; };
      Vector dot{};
      for (int i = 0; i < kStreams; ++i) {
        dot = multiply_add(get(place(i)), result.get(place(i)), dot);
      }
      const Vector factor = divide(spread(Number{1}), load(sums[j]));
      for (int i = 0; i < kStreams; ++i) {
        put(place(i), multiply(subtract(get(place(i)), dot), factor));
      }
    }
  }

  void multiply_by(const Matrices& other) {
    for (int i = 0; i < kElements; ++i) put(i, multiply(get(i), other.get(i)));
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
  // row_at(row, lane) is where a row of a token's matrix begins.
  template <class RowAt>
  void read_rows(const RowAt& row_at) {
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int row = 0; row < kStreams; ++row) {
        const Number* const from = row_at(row, lane);
        for (int i = 0; i < kStreams; ++i) numbers_[row * kStreams + i][lane] = from[i];
      }
    }
  }
  template <class RowAt>
  void write_rows(const RowAt& row_at) const {
    for (int64_t lane = 0; lane < count_; ++lane) {
      for (int row = 0; row < kStreams; ++row) {
        Number* const to = row_at(row, lane);
        for (int i = 0; i < kStreams; ++i) to[i] = numbers_[row * kStreams + i][lane];
      }
    }
  }

  template <class Data>
  auto matrix_at(Data* data, int row, int64_t lane) const {
    return at<Number>(data, (token_ + lane) * kElements + row * kStreams);
  }

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

template <class Sums>
void set_to_1(Sums& sums) {
  for (auto& row : sums) {
    for (auto& each : row) each = 1;
  }
}

template <class Number, int kStreams>
void sinkhorn(const SinkhornTask& task) {
  using Tokens = Matrices<Number, kStreams>;
  const Number eps = static_cast<Number>(task.eps);
  alignas(64) typename Tokens::Sums sums;
  for (int64_t token = 0; token < task.tokens; token += Tokens::kWidth) {
    Tokens matrices(task, token);
    matrices.read(task.x);
    matrices.softmax();
    set_to_1(sums);
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
  set_to_1(sums);
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
    set_to_1(sums);
    result.read_norm(0);
    grad.undo(false, result, sums);
    grad.multiply_by(result);
    grad.write(task.y);
  }
}

}  // namespace
}  // namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA
