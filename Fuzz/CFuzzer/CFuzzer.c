// CFuzzer.c -- makes the module a target; libFuzzer has the code.

#include "CFuzzer.h"
