// The vector type F32 and its primitives, of the instruction set that this file is compiled for.
#pragma once

#ifndef CUSTOM_PYPTO_CPU_ISA
#error "name this source in tool.custom-pypto.isa of pyproject.toml: it is for one instruction set"
#endif

#define CUSTOM_PYPTO_QUOTE_(text) #text
#define CUSTOM_PYPTO_QUOTE(text) CUSTOM_PYPTO_QUOTE_(text)
#include CUSTOM_PYPTO_QUOTE(CUSTOM_PYPTO_CPU_ISA.h)
