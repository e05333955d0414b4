/* A rank that reads an octet of each page of every version, and prints when it has woken up. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

static uint64_t now_ns(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int count, char **arguments)
{
    struct srdma_join_options options = {.size = sizeof options, .flags = 0};
    struct srdma *device;
    struct srdma_group *group;
    struct srdma_version *version;
    int result;

    CHECK(count == 3 && srdma_open(NULL, &device) == 0);
    if (strcmp(arguments[2], "shared") == 0)
        options.flags = SRDMA_JOIN_SHARED;
    CHECK(srdma_group_join_with(device, (uint32_t)atoi(arguments[1]), &options, &group) == 0);
    puts("waiting");
    fflush(stdout);
    while ((result = srdma_take(group, -1, &version)) == 0) {
        uint64_t woken_ns = now_ns(), sum = 0;
        struct srdma_buffer buffer;
        CHECK(srdma_version_find(version, "data", &buffer) == 0);
        for (size_t i = 0; i < buffer.length; i += 4096)
            sum += ((const unsigned char *)buffer.base)[i];
        printf("woken %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", srdma_version_number(version), woken_ns, sum);
        fflush(stdout);
        srdma_release(version);
    }
    CHECK(result == -ESHUTDOWN);
    CHECK(srdma_group_close(group) == 0);
    srdma_close(device);
    return failures == 0 ? 0 : 1;
}
