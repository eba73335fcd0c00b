/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_CUCOMPLEX_H
#define EMULATOR_CUCOMPLEX_H

#include "vector_types.h"

typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

#endif
