/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA C++ for a compiler of the host's: what nvcc declares before a source begins. */
#ifndef EMULATOR_CUDA_RUNTIME_H
#define EMULATOR_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "emulator/engine.h"
#include "emulator/language.h"
#include "emulator/block.h"
#include "emulator/warp.h"
#include "emulator/atomics.h"
#include "emulator/numbers.h"
#include "emulator/launch.h"

#endif
