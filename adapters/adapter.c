/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's functions, and the handles: one for each thread and device, as long as the thread. */
#define _GNU_SOURCE
#include "adapter.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* The function at an address, which ISO C does not convert. */
static bqr_function as_function(void *address) {
  bqr_function function;
  memcpy(&function, &address, sizeof function);
  return function;
}

bqr_function bqr_peer_find(bqr_peer *peer) {
  bqr_function function = atomic_load_explicit(&peer->address, memory_order_relaxed);
  if (function) return function;
  void *address = dlsym(RTLD_NEXT, peer->name);
  for (int i = 0; !address && bqr_peer_libraries[i]; i++) {
    void *library = dlopen(bqr_peer_libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library) address = dlsym(library, peer->name);
  }
  function = as_function(address);
  atomic_store_explicit(&peer->address, function, memory_order_relaxed);
  return function;
}

typedef struct owned {
  struct owned *next;
  int device;
  bool positive;
  batchqr_handle_t handle; /* NULL: it could not be made, and is not tried again */
} owned;

static once_flag once = ONCE_FLAG_INIT;
static tss_t key; /* the thread's list of handles */
static bool have_key;

static void release(void *list) {
  for (owned *o = list, *next; o; o = next) {
    next = o->next;
    batchqr_destroy(o->handle);
    free(o);
  }
}

static void prepare(void) { have_key = tss_create(&key, release) == thrd_success; }

/* The calling thread's device, by the driver that the program has loaded; it has one before it calls a peer.
 */
static int current_device(void) {
  static _Atomic(bqr_function) found;
  bqr_function function = atomic_load_explicit(&found, memory_order_relaxed);
  if (!function) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    function = as_function(driver ? dlsym(driver, "cuCtxGetDevice") : NULL);
    atomic_store_explicit(&found, function, memory_order_relaxed);
  }
  int device = 0;
  return function && !((int (*)(int *))function)(&device) ? device : 0;
}

static owned *new_owned(int device, bool positive) {
  owned *o = calloc(1, sizeof *o);
  if (!o) return NULL;
  /* A program that calls the peer has its data on the GPU. The CPU is for tests. */
  const char *backend = getenv("BATCHQR_ADAPTERS_BACKEND");
  batchqr_options options = {.backend = BATCHQR_BACKEND_CUDA, .positive_diagonal = positive};
  if (backend && !strcmp(backend, "cpu")) options.backend = BATCHQR_BACKEND_CPU;
  *o = (owned){.next = tss_get(key), .device = device, .positive = positive};
  if (!backend || strcmp(backend, "none") != 0) batchqr_create(&o->handle, &options);
  if (tss_set(key, o) == thrd_success) return o;
  batchqr_destroy(o->handle);
  free(o);
  return NULL;
}

batchqr_handle_t bqr_adapter_handle(batchqr_stream stream, bool positive) {
  call_once(&once, prepare);
  if (!have_key) return NULL;
  const int device = current_device();
  owned *o = tss_get(key);
  while (o && (o->device != device || o->positive != positive)) o = o->next;
  if (!o) o = new_owned(device, positive);
  if (!o || !o->handle || batchqr_set_stream(o->handle, stream)) return NULL;
  return o->handle;
}

batchqr_storage bqr_adapter_strided(int ld, int64_t stride) {
  return (batchqr_storage){.layout = BATCHQR_STRIDED, .ld = ld, .stride = stride};
}

batchqr_storage bqr_adapter_pointers(int ld) {
  return (batchqr_storage){.layout = BATCHQR_POINTERS, .ld = ld};
}
