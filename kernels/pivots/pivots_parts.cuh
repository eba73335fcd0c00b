/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder call of one another. */
#ifndef BQR_KERNELS_PIVOTS_PARTS_CUH
#define BQR_KERNELS_PIVOTS_PARTS_CUH

#include "pivots.h"

namespace bqr {

batchqr_status prepare_products(batchqr_type type);
batchqr_status prepare_choice(batchqr_type type, const bqr_pivots *p);
/* A^H A of all members. */
batchqr_status form_grams(batchqr_type type, const bqr_pivots *p, batchqr_stream stream);
/* The Schur complement after a panel. */
batchqr_status form_complements(batchqr_type type, const bqr_pivots *p, int panel, batchqr_stream stream);

} // namespace bqr

#endif
