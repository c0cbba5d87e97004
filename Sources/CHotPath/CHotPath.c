// CHotPath.c -- everything is inline; a target needs a source file.
#include "CHotPath.h"
