/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a member of a large batch is predicted to take. */
#ifndef BQR_SRC_RANKS_PREDICT_H
#define BQR_SRC_RANKS_PREDICT_H

#include "handle.h"

/* Seconds of the device, of which others in the batch use what the member leaves idle. Pure. */
double bqr_predict(const bqr_device *device, const bqr_operation *operation, batchqr_type type,
                   bqr_dims sizes);

#endif
