/* SPDX-License-Identifier: BSD-3-Clause */
/* bqr_wy_take() of launches that may be switched off. */
#ifndef BQR_KERNELS_WY_WY_FORM_H
#define BQR_KERNELS_WY_WY_FORM_H

#include "wy/wy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where done is NULL or what is 0 on the device. */
batchqr_status bqr_wy_take_unless(batchqr_type type, const bqr_wy_block *block, const int *done,
                                  batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
