/* SPDX-License-Identifier: BSD-3-Clause */
/* A C++ user: factors one complex matrix, whose R(1,1) is its norm. */
#include <batchqr/batchqr.h>
#include <cmath>
#include <complex>

int main() {
  std::complex<double> a[3] = {{1, 2}, {0, 2}, {4, 0}}, tau;
  batchqr_options options{};
  options.backend = BATCHQR_BACKEND_CPU;
  batchqr_handle_t handle;
  if (batchqr_create(&handle, &options) != BATCHQR_SUCCESS) return 1;
  batchqr_status status = batch_zgeqrf_strided(handle, 3, 1, a, 3, 3, &tau, 1, 1);
  batchqr_destroy(handle);
  return status == BATCHQR_SUCCESS && std::abs(std::abs(a[0]) - 5.0) < 1e-14 ? 0 : 1;
}
