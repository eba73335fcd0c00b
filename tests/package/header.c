/* SPDX-License-Identifier: BSD-3-Clause */
/* The header compiles alone and first, as C11 and as C++17. */
#include <batchqr/batchqr.h>

int main(void) { return sizeof(batchqr_batch) == 0 || BATCHQR_VERSION == 0; }
