/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner: from a checked batch to a plan. It is a function of its arguments, without a GPU. */
#ifndef BQR_SRC_PLAN_H
#define BQR_SRC_PLAN_H

#include "batch.h"
#include "error.h"
#include "streams.h"
#include "registry.h"
#include "families/sort/sort.h"
#include "temporaries.h"
#include "tuning.h"

/* A choice that a test or a benchmark forces on an operation. */
typedef struct bqr_forced {
  const bqr_family *family; /* NULL: nothing is forced */
  int variant;              /* -1: the first that supports the problem */
} bqr_forced;

enum { BQR_NUM_FORCED = BQR_NUM_ROLES * BQR_MOST_OPS };
static inline int bqr_forced_index(int op, bqr_role role) { return (int)role * BQR_MOST_OPS + op; }

/* What plans depend on besides the batch. */
typedef struct bqr_planner {
  const bqr_registry *registry;
  const bqr_device *device;
  const bqr_table *table;       /* NULL: none */
  const bqr_table *child_table; /* NULL: none; read after the other */
  const bqr_forced *forced;     /* by bqr_forced_index(), or NULL */
  batchqr_compute compute;
  size_t workspace_limit; /* bytes; 0: none */
  bool positive;
  bool sorts_always; /* members with sizes on the device, however few */
} bqr_planner;

/* The members that one launch of one step serves. */
typedef struct bqr_group {
  bqr_problem problem;
  const bqr_family *family;
  const bqr_variant *variant;
  bqr_step step;       /* what of the program it does; the operation itself: its own operands and sizes */
  bqr_dims largest;    /* of the batch's sizes; the problem has those of the step */
  bool sized;          /* members differ: their sizes are read from arrays */
  bool copied;         /* its members are worked on as transposed copies */
  int64_t list;        /* where its members start in the plan's lists; -1: all members of the batch */
  uint64_t boxes;      /* of sorted members: which are its own, a bit for each */
  int stage;           /* groups of one stage need nothing of each other: they have other members */
  int stream;          /* see streams.h */
  size_t workspace;    /* bytes */
  size_t workspace_at; /* from the start of the plan's */
  void *state;         /* see bqr_family.open */
  char label[80];      /* family and variant */
  char source[80];     /* see bqr_group_info */
} bqr_group;

/* Where in the workspace the arrays of a bqr_sort are, in bytes from its start. */
typedef struct bqr_sort_places {
  size_t counts, m, n, k, lda, ldc, ldr, info, box, lists;
} bqr_sort_places;

/* Steps are in the order of execution, the groups of one step side by side. */
struct batchqr_plan {
  const bqr_operation *operation;
  batchqr_batch batch; /* normalized; host size arrays are the image's copies */
  bqr_device device;
  bqr_group *groups;
  int num_groups;
  int num_streams;
  bqr_streams *streams; /* NULL: one */

  /* Arrays over members with host sizes: offsets of temporaries, the batch's arrays, the groups' lists of
   * members. */
  void *image;
  size_t image_bytes;
  bool reads_image; /* some launch does, so that it must be in the backend's memory */
  void *resident;   /* where it is there */
  const int *lists;

  /* In the workspace, one after the other: the program's temporaries, sorted members, the families' own: the
   * largest of each stream. */
  bqr_temporary temporaries[BQR_NUM_TEMPORARIES];
  bool sorted; /* sizes are on the device, and it sorts members by them; groups' lists are in the workspace */
  bqr_sort sort;
  bqr_sort_places sort_places;
  size_t workspace_bytes, families_bytes; /* all of it; of it, the families' */

  /* What a program's steps work on in the place of A and C, and what every step writes in the place of C and
   * R: the operand itself, or a copy. */
  bqr_operand stand_ins[BQR_NUM_OPERANDS];

  int64_t largest[BQR_NUM_OPERANDS];  /* most elements of a member's part of an operand */
  bool stored_as_a[BQR_NUM_OPERANDS]; /* its storage is that of A */
  bool aligned[BQR_NUM_OPERANDS];     /* its address has to be, see alignment.c */
  char *description;
  struct batchqr_plan *next; /* for the handle */
};

/* Plans a batch that bqr_check_batch() has passed. */
batchqr_status bqr_plan_new(const bqr_planner *planner, int op, const batchqr_batch *batch,
                            struct batchqr_plan **plan, bqr_error *error);
void bqr_plan_free(struct batchqr_plan *plan);

/* Writes plan->description. */
batchqr_status bqr_plan_describe(const bqr_planner *planner, struct batchqr_plan *plan, bqr_error *error);

/* Takes n * size bytes, aligned, at the end of a workspace of so far *end bytes; false if they are beyond
 * counting. */
bool bqr_reserve(size_t *end, size_t n, size_t size, size_t *at);

/* sort.c: whether sorting so many members, of a kind that can be sorted, is worth its time. */
bool bqr_sort_pays(const bqr_operation *operation, const batchqr_batch *batch, const bqr_device *device);
/* Sets the boxes that the batch's members may be sorted into, and returns how many there are; 1 where sorting
 * is no use. */
int bqr_sort_boxes(const bqr_operation *operation, const batchqr_batch *batch, bqr_sort *sort);
/* The largest sizes of a box, and whether all its members have m >= n, for sure. */
bqr_dims bqr_sort_box_sizes(const batchqr_batch *batch, const bqr_sort *sort, int box);
bool bqr_sort_box_is_tall(const bqr_sort *sort, int box);
/* Gives groups the lists of their boxes; false if all have all boxes, or there are too many lists. */
bool bqr_sort_list(struct batchqr_plan *plan);
bool bqr_sort_size(struct batchqr_plan *plan, size_t *end);
/* What SORT is to write in this workspace; with info where that is wanted. */
bqr_sort bqr_sort_bind(const struct batchqr_plan *plan, bool info, char *workspace);
/* Sets the members, and replaces the caller's arrays in `args` by what SORT has written. */
void bqr_sort_apply(const struct batchqr_plan *plan, const bqr_sort *sort, const bqr_group *g,
                    bqr_args *args);

/* Whether the batch's host size arrays hold what the plan's copies hold; the rest of the batch is equal. */
bool bqr_plan_same_sizes(const struct batchqr_plan *plan, const batchqr_batch *batch);

/* bind.c: what a group's launch is given. `sort`: what SORT was told to write, where members are sorted. */
bqr_args bqr_plan_bind(const struct batchqr_plan *plan, const bqr_group *g, const batchqr_operands *operands,
                       char *workspace, bqr_sort *sort);

/* Whether an operand that may be A is A. */
bool bqr_plan_aliases_a(const struct batchqr_plan *plan, const batchqr_operands *operands);

/* execute.c: readies the plan for its device (memory, kernels), and enqueues it. `operands` and `workspace`
 * are checked. */
batchqr_status bqr_plan_prepare(struct batchqr_plan *plan, bqr_error *error);
batchqr_status bqr_plan_launch(const struct batchqr_plan *plan, const batchqr_operands *operands,
                               void *workspace, batchqr_stream stream, bqr_error *error);

#endif
