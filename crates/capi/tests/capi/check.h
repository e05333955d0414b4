/* A check that says which one failed, for the C programs of tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

#include <srdma.h>

static int failures;

#define CHECK(condition)                                                                                                \
    do {                                                                                                                \
        if (!(condition)) {                                                                                             \
            printf("line %d: %s; message: %s\n", __LINE__, #condition, srdma_last_message());                           \
            failures++;                                                                                                 \
        }                                                                                                               \
    } while (0)

#endif
