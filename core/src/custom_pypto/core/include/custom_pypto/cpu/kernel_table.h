// CUSTOM_PYPTO_KERNELS and its like for bf16 and int8: kernels that are compiled once per
// instruction set. Included by them and by their callers.
//
// The kernels' header, included by both, declares a table of functions:
//   namespace my_op {
//   struct Kernels { void (*scale)(const float* in, float* out, int64_t count, float factor); };
//   CUSTOM_PYPTO_KERNELS(Kernels, kernels)
//   }
// Their source, named in tool.custom-pypto.isa of pyproject.toml, is compiled once for each
// instruction set, and defines the table of that one:
//   namespace custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA { namespace { void scale(...) { ... } } }
//   constexpr my_op::Kernels my_op::CUSTOM_PYPTO_OF_ISA(kernels) = {
//       &custom_pypto::cpu::CUSTOM_PYPTO_CPU_ISA::scale};
// Every other source calls my_op::kernels().scale(in, out, count, factor).
//
// Kernels that multiply numbers of bf16 or int8 are compiled for further instruction sets: name
// their source in bf16-sources, int8-sources, or both, and use the macro below of that name.
//
// Such a source includes nothing of the standard library, ATen or torch: the linker would merge
// inline functions compiled there with other files' functions, and older machines would crash. Its
// functions are in an unnamed namespace for the same reason, and its table is constexpr, so that
// nothing compiled for an instruction set runs before the choice.
#pragma once

#include <custom_pypto/cpu/isa.h>

#define CUSTOM_PYPTO_PASTE_(a, b) a##_##b
#define CUSTOM_PYPTO_PASTE(a, b) CUSTOM_PYPTO_PASTE_(a, b)
#define CUSTOM_PYPTO_DECLARE_OF_ISA(isa, Table, name) extern const Table name##_##isa;

#ifdef CUSTOM_PYPTO_CPU_ISA  // defined by custom_pypto_build

#define CUSTOM_PYPTO_TABLES(FOR_EACH, Table, name) \
  FOR_EACH(CUSTOM_PYPTO_DECLARE_OF_ISA, Table, name)

// The name of the table of the instruction set that is being compiled for.
#define CUSTOM_PYPTO_OF_ISA(name) CUSTOM_PYPTO_PASTE(name, CUSTOM_PYPTO_CPU_ISA)

#else

#include <custom_pypto/current_isa.h>

#define CUSTOM_PYPTO_IF_UP_TO(each, name, last) \
  if (::custom_pypto::Isa::each <= last) table = &name##_##each;
#define CUSTOM_PYPTO_TABLES(FOR_EACH, Table, name)         \
  FOR_EACH(CUSTOM_PYPTO_DECLARE_OF_ISA, Table, name)       \
  inline const Table& name() {                             \
    const auto of_process = ::custom_pypto::current_isa(); \
    const Table* table = nullptr;                          \
    FOR_EACH(CUSTOM_PYPTO_IF_UP_TO, name, of_process)      \
    return *table;                                         \
  }

#endif

// Declares `const Table& name()`: the table of the process's instruction set, or of the last before
// it. Throws std::runtime_error when CUSTOM_PYPTO_CPU_ISA names one that the machine lacks.
#define CUSTOM_PYPTO_KERNELS(Table, name) \
  CUSTOM_PYPTO_TABLES(CUSTOM_PYPTO_FOR_EACH_ISA, Table, name)
#define CUSTOM_PYPTO_BF16_KERNELS(Table, name) \
  CUSTOM_PYPTO_TABLES(CUSTOM_PYPTO_FOR_EACH_BF16_ISA, Table, name)
#define CUSTOM_PYPTO_INT8_KERNELS(Table, name) \
  CUSTOM_PYPTO_TABLES(CUSTOM_PYPTO_FOR_EACH_INT8_ISA, Table, name)
#define CUSTOM_PYPTO_BF16_INT8_KERNELS(Table, name) \
  CUSTOM_PYPTO_TABLES(CUSTOM_PYPTO_FOR_EACH_BF16_INT8_ISA, Table, name)
