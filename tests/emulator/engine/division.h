/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_DIVISION_H
#define EMULATOR_DIVISION_H

namespace emulator {

void allow_division_by_zero();

} // namespace emulator

#endif
