#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CFuzzer.h -- libFuzzer's own entry, for a program that has its own main.

#include <stddef.h>
#include <stdint.h>

// Runs libFuzzer with a command line; `test` is called with every input and returns 0.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*test)(const uint8_t *data, size_t size));
