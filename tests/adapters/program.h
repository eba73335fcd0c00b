/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs share that call a peer of batchqr, and know nothing of batchqr: memory, matrices and what
 * is wrong with them, times. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <complex.h>
#include <stddef.h>

/* The call of a function for a type of LAPACK's letter. */
#define BY_TYPE(letter, s, d, c, z, ...)                                                                     \
  ((letter) == 'S'   ? s(__VA_ARGS__)                                                                        \
   : (letter) == 'D' ? d(__VA_ARGS__)                                                                        \
   : (letter) == 'C' ? c(__VA_ARGS__)                                                                        \
                     : z(__VA_ARGS__))

/* Memory that the host and, if there is one, the GPU can use, zero at first; and the end of the GPU's work.
 */
void *shared_memory(size_t bytes);
void finish(void);

/* `count` matrices of a type, one after the other, by columns; or vectors, with one column. */
typedef struct matrices {
  char letter;
  int rows, columns, ld, count;
  char *data;
  void **addresses; /* of the matrices */
} matrices;

/* With leading dimensions one larger than must be. */
matrices new_matrices(char letter, int rows, int columns, int count);
matrices new_vectors(char letter, int elements, int count);
void copy_matrices(matrices to, matrices from);
void fill_matrices(matrices a);

double complex entry(matrices a, int k, int i, int j);
void set_entry(matrices a, int k, int i, int j, double complex x);
double epsilon_of(char letter);
/* Its real type. */
char real_letter(char letter);

/* A dense matrix of one member, for checks. */
typedef struct dense {
  int rows, columns;
  double complex x[64 * 64];
} dense;

dense member(matrices a, int k, int rows, int columns);
dense upper_triangle(matrices a, int k, int rows, int columns);
dense product(const dense *a, const dense *b);
dense adjoint(const dense *a);
/* The largest |a - b| relative to the type's precision. */
double difference(const dense *a, const dense *b, char letter);
/* The same of Q^H Q and I. */
double not_orthonormal(const dense *q, char letter);
/* The same of R^H R and A^H A. */
double not_the_factor(const dense *r, const dense *a, char letter);

/* Prints what was wrong; the program fails in the end. */
void judge(const char *call, matrices a, double error);
int verdict(void);

/* With the argument --time, programs print call,type,rows,columns,count,ms, the median of several calls. */
typedef void work(void *);
void take_time(const char *call, matrices a, work *restore, work *run, void *what);

#endif
