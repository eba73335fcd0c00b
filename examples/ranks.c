/* SPDX-License-Identifier: BSD-3-Clause */
/* What several processes of MPI do together: a batch of matrices of many sizes, dealt to them, the least
 * squares fit of a polynomial to points that are spread over them, and a system of linear equations whose
 * columns are. Run it with mpirun -n 4 ranks. */
#include <batchqr/mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static _Noreturn void stop(const char *what) {
  fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes > 0 ? bytes : 1);
  return memory ? memory : (stop("out of memory"), NULL);
}

/* Factors this rank's share of a batch; returns how many members it was. */
static int factor_share(batchqr_handle_t handle, const batchqr_communicator *ranks) {
  enum { MEMBERS = 200 };
  int m[MEMBERS], n[MEMBERS], rank_of[MEMBERS], count = 0;
  int64_t elements = 0;
  for (int i = 0; i < MEMBERS; i++) m[i] = 20 + i * 37 % 150, n[i] = 1 + i * 11 % 40;
  batchqr_batch batch = {
      .type = BATCHQR_D, .sizes = BATCHQR_HOST_SIZES, .count = MEMBERS, .m_array = m, .n_array = n};
  if (batchqr_split(handle, BATCHQR_GEQRF, &batch, ranks->size, rank_of, NULL))
    stop(batchqr_error_message(handle));

  double *a[MEMBERS], *tau[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) {
    if (rank_of[i] != ranks->rank) continue;
    a[count] = allocate(sizeof(double) * (size_t)m[i] * (size_t)n[i]);
    tau[count] = allocate(sizeof(double) * (size_t)n[i]);
    for (int e = 0; e < m[i] * n[i]; e++) a[count][e] = sin(i + e);
    m[count] = m[i];
    n[count++] = n[i];
    elements += (int64_t)m[i] * n[i];
  }
  batch.count = count;
  batch.a = (batchqr_storage){.layout = BATCHQR_POINTERS, .ld_array = m};
  batch.tau = (batchqr_storage){.layout = BATCHQR_POINTERS};
  if (batch_geqrf(handle, &batch, a, tau, NULL)) stop(batchqr_error_message(handle));
  printf("rank %d of %d factored %d of %d matrices, %lld elements\n", ranks->rank, ranks->size, count,
         MEMBERS, (long long)elements);
  for (int i = 0; i < count; i++) free(a[i]), free(tau[i]);
  return count;
}

/* Fits 1 + 2 x + 3 x^2 + 4 x^3 + 5 x^4 to its own values at points of which each rank has some; returns the
 * largest error of a coefficient. */
static double fit(batchqr_handle_t handle, const batchqr_communicator *ranks) {
  enum { TERMS = 5 };
  const int own = 1000 + 100 * ranks->rank;
  double *a = allocate(sizeof(double[TERMS]) * (size_t)own), *b = allocate(sizeof(double) * (size_t)own);
  for (int i = 0; i < own; i++) {
    const double x = cos(i + 10000 * ranks->rank);
    for (int j = 0; j < TERMS; j++) a[j * own + i] = pow(x, j);
    for (int j = 0; j < TERMS; j++) b[i] += (j + 1) * pow(x, j);
  }
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, own, TERMS, 1, 1);
  batchqr_tsqr_t plan;
  if (batchqr_tsqr_create(handle, ranks, BATCHQR_GELS, &batch, &plan) ||
      batchqr_tsqr_execute(handle, plan, &(batchqr_operands){.a = a, .c = b}) || batchqr_wait(handle, ranks))
    stop(batchqr_error_message(handle));
  double worst = 0;
  for (int j = 0; j < TERMS; j++) worst = fmax(worst, fabs(b[j] - (j + 1)));
  batchqr_tsqr_destroy(plan);
  free(a);
  free(b);
  return worst;
}

/* Solves A X = B for an A whose columns are dealt to the ranks in blocks, and a B of one column, which all
 * ranks have; returns the largest error of an unknown, all of which are 1. */
static double solve(batchqr_handle_t handle, const batchqr_communicator *ranks) {
  enum { N = 300, NB = 32 };
  const int own = batchqr_columns_count(N, NB, ranks->rank, ranks->size);
  double *a = allocate(sizeof(double[N]) * (size_t)own), *b = allocate(sizeof(double[N]));
  for (int j = 0; j < own; j++) {
    const int column = (j / NB * ranks->size + ranks->rank) * NB + j % NB;
    for (int i = 0; i < N; i++) a[j * N + i] = cos(i * (column + 1)) + (i == column ? 20 : 0);
  }
  for (int i = 0; i < N; i++)
    for (int column = 0; column < N; column++) b[i] += cos(i * (column + 1)) + (i == column ? 20 : 0);
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, N, N, 1, 1);
  batchqr_columns_t plan;
  if (batchqr_columns_create(handle, ranks, BATCHQR_GELS, &batch, NB, &plan) ||
      batchqr_columns_execute(handle, plan, &(batchqr_operands){.a = a, .c = b}) ||
      batchqr_wait(handle, ranks))
    stop(batchqr_error_message(handle));
  double worst = 0;
  for (int i = 0; i < N; i++) worst = fmax(worst, fabs(b[i] - 1));
  batchqr_columns_destroy(plan);
  free(a);
  free(b);
  return worst;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  batchqr_handle_t handle;
  batchqr_communicator *ranks;
  if (batchqr_create(&handle, &(batchqr_options){.backend = BATCHQR_BACKEND_CPU}))
    stop(batchqr_error_message(NULL));
  if (batchqr_mpi_create(&ranks, MPI_COMM_WORLD, BATCHQR_BACKEND_CPU, BATCHQR_MPI_AUTO, 0))
    stop("no communicator");
  int count = factor_share(handle, ranks), total;
  MPI_Allreduce(&count, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const double worst = fit(handle, ranks);
  const double error = solve(handle, ranks);
  if (ranks->rank == 0)
    printf("%d matrices in all; the fit's largest error is %.1e, that of a system's unknowns %.1e\n", total,
           worst, error);
  batchqr_communicator_destroy(ranks);
  batchqr_destroy(handle);
  MPI_Finalize();
  return total != 200 || !(worst < 1e-12) || !(error < 1e-11);
}
