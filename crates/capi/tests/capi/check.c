/* Calls the library as a C program does: compiled, linked and run by the test. Prints layouts, which the test compares. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MEMBER(structure, member)                                                                                       \
    printf("layout %s.%s %zu %zu\n", #structure, #member, offsetof(struct structure, member),                           \
           sizeof(((struct structure *)0)->member))

static void layouts(void)
{
    MEMBER(srdma_options, size);
    MEMBER(srdma_options, provider);
    MEMBER(srdma_options, controller);
    MEMBER(srdma_options, token_file);
    MEMBER(srdma_options, ca_file);
    MEMBER(srdma_options, address);
    MEMBER(srdma_group_options, size);
    MEMBER(srdma_group_options, name);
    MEMBER(srdma_group_options, proxy);
    MEMBER(srdma_group_options, slot_octets);
    MEMBER(srdma_group_options, slots);
    MEMBER(srdma_group_options, path_mtu);
    MEMBER(srdma_group_options, digest);
    MEMBER(srdma_group_options, on_failure);
    MEMBER(srdma_group_options, stall_ms);
    MEMBER(srdma_group_options, min_receivers);
    MEMBER(srdma_group_options, slow_after_ms);
    MEMBER(srdma_group_options, window_octets);
    MEMBER(srdma_group_options, not_ready_ms);
    MEMBER(srdma_group_options, flags);
    MEMBER(srdma_group_options, more_slot_octets);
    MEMBER(srdma_group_options, more_regions);
    MEMBER(srdma_group_options, reserved);
    MEMBER(srdma_region, base);
    MEMBER(srdma_region, length);
    MEMBER(srdma_join_options, size);
    MEMBER(srdma_join_options, base);
    MEMBER(srdma_join_options, length);
    MEMBER(srdma_join_options, runtime_directory);
    MEMBER(srdma_join_options, flags);
    MEMBER(srdma_join_options, reserved);
    MEMBER(srdma_buffer, name);
    MEMBER(srdma_buffer, base);
    MEMBER(srdma_buffer, length);
    MEMBER(srdma_event, size);
    MEMBER(srdma_event, kind);
    MEMBER(srdma_event, error);
    MEMBER(srdma_event, version);
    MEMBER(srdma_event, message);
    MEMBER(srdma_statistics, size);
    MEMBER(srdma_statistics, versions);
    MEMBER(srdma_statistics, octets);
    MEMBER(srdma_statistics, failed);
    MEMBER(srdma_statistics, waiting);
    MEMBER(srdma_statistics, slow);
    MEMBER(srdma_statistics, strays);
    MEMBER(srdma_statistics, packets_sent);
    MEMBER(srdma_statistics, packets_retransmitted);
    MEMBER(srdma_statistics, packets_acknowledged);
    MEMBER(srdma_statistics, timeouts);
    MEMBER(srdma_statistics, naks);
    MEMBER(srdma_statistics, rnr_naks);
    MEMBER(srdma_statistics, cnps);
    MEMBER(srdma_statistics, octets_received);
    MEMBER(srdma_statistics, duplicates);
    printf("layout srdma_options %zu\n", sizeof(struct srdma_options));
    printf("layout srdma_group_options %zu\n", sizeof(struct srdma_group_options));
    printf("layout srdma_region %zu\n", sizeof(struct srdma_region));
    printf("layout srdma_join_options %zu\n", sizeof(struct srdma_join_options));
    printf("layout srdma_buffer %zu\n", sizeof(struct srdma_buffer));
    printf("layout srdma_event %zu\n", sizeof(struct srdma_event));
    printf("layout srdma_statistics %zu\n", sizeof(struct srdma_statistics));
}

static int contains(const char *part)
{
    return strstr(srdma_last_message(), part) != NULL;
}

static void *another_thread(void *unused)
{
    (void)unused;
    CHECK(strcmp(srdma_last_message(), "") == 0);
    return NULL;
}

/* The last line of the log, and their number. */
struct lines {
    int count;
    int level;
    char last[512];
};

static void take_line(void *context, int level, const char *message)
{
    struct lines *lines = context;

    lines->count++;
    lines->level = level;
    strncpy(lines->last, message, sizeof lines->last - 1);
}

static void logging(void)
{
    struct srdma_options options = {.size = sizeof options, .provider = "udp", .controller = "http://[::1]:1"};
    struct lines lines = {0}, none = {0};
    struct srdma *device = NULL;

    CHECK(srdma_set_log(5, take_line, &lines) == -EINVAL && contains("level 5"));
    CHECK(srdma_set_log(SRDMA_LOG_DEBUG, take_line, &lines) == 0);
    CHECK(srdma_open(&options, &device) == 0);
    srdma_close(device);
    CHECK(lines.count == 1 && lines.level == SRDMA_LOG_DEBUG && strstr(lines.last, "http://[::1]:1") != NULL);
    CHECK(srdma_set_log(SRDMA_LOG_INFO, take_line, &none) == 0);
    CHECK(srdma_open(&options, &device) == 0);
    srdma_close(device);
    CHECK(srdma_set_log(0, NULL, NULL) == 0);
    CHECK(srdma_open(&options, &device) == 0);
    srdma_close(device);
    CHECK(lines.count == 1 && none.count == 0);
}

/* The test has compiled a library that stands for the CUDA driver. */
static void gpu_memory(void)
{
    struct srdma_options options = {.size = sizeof options, .controller = "http://[::1]:1", .address = "::1"};
    static unsigned char host_memory[4096];
    struct srdma *device = NULL;
    struct srdma_group *group = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *on_device, *managed;

    CHECK(driver != NULL);
    if (driver == NULL)
        return;
    on_device = dlsym(driver, "cuda_device_memory");
    managed = dlsym(driver, "cuda_managed_memory");
    CHECK(srdma_open(&options, &device) == 0);
    CHECK(srdma_group_join(device, 1, on_device, 4096, &group) == -EOPNOTSUPP && contains("memory of a GPU"));
    CHECK(srdma_group_join(device, 1, managed, 4096, &group) == -ECONNREFUSED);
    CHECK(srdma_group_join(device, 1, host_memory, 4096, &group) == -ECONNREFUSED);
    srdma_close(device);
}

static void null_pointers(void)
{
    struct srdma_group *group = NULL;
    struct srdma_version *version = NULL;
    struct srdma_buffer buffer;
    struct srdma_event event = {.size = sizeof event};
    struct srdma_statistics statistics = {.size = sizeof statistics};
    uint32_t number;

    CHECK(srdma_open(NULL, NULL) == -EINVAL && contains("device is NULL"));
    CHECK(srdma_group_create(NULL, NULL, &group) == -EINVAL && contains("device is NULL") && group == NULL);
    CHECK(srdma_group_join(NULL, 1, NULL, 0, &group) == -EINVAL && group == NULL);
    CHECK(srdma_group_join(NULL, 1, NULL, 0, NULL) == -EINVAL);
    CHECK(srdma_group_join_with(NULL, 1, NULL, &group) == -EINVAL && contains("device is NULL") && group == NULL);
    CHECK(srdma_group_number(NULL, &number) == -EINVAL);
    CHECK(srdma_group_commit(NULL, 1, 0) == -EINVAL);
    CHECK(srdma_group_close(NULL) == -EINVAL);
    CHECK(srdma_publish(NULL, 1, NULL, 0) == -EINVAL);
    CHECK(srdma_wait(NULL, 1, 0) == -EINVAL);
    CHECK(srdma_take(NULL, 0, &version) == -EINVAL && version == NULL);
    CHECK(srdma_version_number(NULL) == 0 && srdma_version_buffers(NULL) == 0);
    CHECK(srdma_version_buffer(NULL, 0, &buffer) == -EINVAL);
    CHECK(srdma_version_find(NULL, "a", &buffer) == -EINVAL);
    CHECK(srdma_fd(NULL) == -EINVAL);
    CHECK(srdma_next_event(NULL, &event) == -EINVAL);
    CHECK(srdma_group_statistics(NULL, &statistics) == -EINVAL);
    srdma_release(NULL);
    srdma_close(NULL);
}

static void options(void)
{
    struct newer {
        struct srdma_options options;
        size_t unknown;
    } newer = {.options = {.size = sizeof newer, .provider = "udp", .controller = "http://[::1]:1"}, .unknown = 0};
    struct srdma_options options = {.size = sizeof options, .provider = "verbs:none0"};
    struct srdma *device = NULL;

    /* Without libibverbs, without RDMA in the kernel, or without this device. */
    CHECK(srdma_open(&options, &device) == -ENODEV && device == NULL);
    CHECK(contains("libibverbs") || contains("RDMA"));
    options.provider = "shm";
    CHECK(srdma_open(&options, &device) == -ENODEV && contains("\"shm\""));
    options.provider = "\xff";
    CHECK(srdma_open(&options, &device) == -EINVAL && contains("provider is no UTF-8"));
    options.provider = NULL;
    options.controller = "ftp://x";
    CHECK(srdma_open(&options, &device) == -ECONNREFUSED && contains("ftp://x"));
    options.controller = "http://[::1]:1";
    options.address = "192.0.2";
    CHECK(srdma_open(&options, &device) == -EINVAL && contains("\"192.0.2\" is no IPv6 or IPv4 address"));
    options.address = "192.0.2.1";
    CHECK(srdma_open(&options, &device) == 0);
    srdma_close(device);
    options.address = NULL;
    options.token_file = "/nonexistent/token";
    CHECK(srdma_open(&options, &device) == -EACCES && contains("/nonexistent/token"));
    options.size = 0;
    CHECK(srdma_open(&options, &device) == -EINVAL && contains("sizeof"));
    /* An older program, whose structure ends before the token file. */
    options.size = offsetof(struct srdma_options, token_file);
    CHECK(srdma_open(&options, &device) == 0 && device != NULL);
    srdma_close(device);

    CHECK(srdma_open(&newer.options, &device) == 0);
    srdma_close(device);
    newer.unknown = 1;
    CHECK(srdma_open(&newer.options, &device) == -E2BIG);
}

static void groups(void)
{
    struct srdma_options options = {.size = sizeof options, .controller = "http://[::1]:1", .address = "::1"};
    struct srdma_group_options group_options = {.size = sizeof group_options};
    struct srdma_join_options join_options = {.size = sizeof join_options};
    unsigned char memory[8];
    struct srdma_region regions[2] = {{memory, sizeof memory}, {NULL, 0}};
    uint64_t more[2] = {64, 0};
    struct srdma *device = NULL;
    struct srdma_group *group = NULL;
    pid_t child;
    int status;

    CHECK(srdma_open(&options, &device) == 0);
    CHECK(srdma_group_create(device, NULL, &group) == -EINVAL && contains("options is NULL"));
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("slots: 2 of 0 octets"));
    group_options.slot_octets = UINT64_MAX;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL);
    group_options.slot_octets = 4096;
    group_options.slots = 65;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("1 to 64"));
    group_options.slots = 0;
    group_options.digest = 9;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("digest 9"));
    group_options.digest = SRDMA_DIGEST_CRC32;
    group_options.on_failure = 3;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("on_failure 3"));
    group_options.on_failure = SRDMA_ON_FAILURE_STRICT;
    group_options.flags = SRDMA_KEEP_CURRENT | 2;
    CHECK(srdma_group_create(device, &group_options, &group) == -E2BIG && contains("flags 0x3"));
    group_options.flags = SRDMA_KEEP_CURRENT;
    group_options.path_mtu = 1500;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("path_mtu 1500"));
    group_options.path_mtu = 1024;
    group_options.proxy = "here";
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("\"here\""));
    group_options.more_regions = 16;
    group_options.more_slot_octets = more;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("16 regions, at most 15"));
    group_options.more_regions = 2;
    group_options.more_slot_octets = NULL;
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("or NULL"));
    group_options.more_slot_octets = more;
    group_options.reserved = 1;
    CHECK(srdma_group_create(device, &group_options, &group) == -E2BIG && contains("reserved"));
    group_options.reserved = 0;
    group_options.proxy = "2001:db8::1";
    CHECK(srdma_group_create(device, &group_options, &group) == -EINVAL && contains("0 octets"));
    more[1] = 4096;
    CHECK(srdma_group_create(device, &group_options, &group) == -ECONNREFUSED && contains("http://[::1]:1"));
    CHECK(srdma_group_join(device, 1, NULL, 0, &group) == -ECONNREFUSED && group == NULL);
    CHECK(srdma_group_join_regions(device, 1, NULL, 2, &group) == -EINVAL && contains("2 regions, at most 16"));
    CHECK(srdma_group_join_regions(device, 1, regions, 17, &group) == -EINVAL);
    CHECK(srdma_group_join_regions(device, 1, regions, 2, &group) == -EINVAL && contains("base of a region"));
    CHECK(srdma_group_join_regions(device, 1, regions, 1, &group) == -ECONNREFUSED && group == NULL);
    CHECK(srdma_group_join_regions(device, 1, NULL, 0, &group) == -ECONNREFUSED && group == NULL);

    CHECK(srdma_group_join_with(device, 1, NULL, &group) == -EINVAL && contains("options is NULL"));
    CHECK(srdma_group_join_with(device, 1, &join_options, &group) == -ECONNREFUSED && group == NULL);
    join_options.flags = SRDMA_JOIN_SHARED | 4;
    CHECK(srdma_group_join_with(device, 1, &join_options, &group) == -E2BIG && contains("flags 0x5"));
    join_options.flags = SRDMA_JOIN_SHARED;
    CHECK(srdma_group_join_with(device, 1, &join_options, &group) == -ECONNREFUSED);
    join_options.base = memory;
    join_options.length = sizeof memory;
    CHECK(srdma_group_join_with(device, 1, &join_options, &group) == -EINVAL && contains("ranks of a host"));

    child = fork();
    if (child == 0)
        _exit(srdma_group_join(device, 1, NULL, 0, &group) == -ECHILD ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    srdma_close(device);
}

int main(void)
{
    pthread_t thread;

    layouts();
    printf("version %u\n", (unsigned)srdma_library_version());
    null_pointers();
    CHECK(strlen(srdma_last_message()) > 0);
    CHECK(pthread_create(&thread, NULL, another_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    logging();
    options();
    groups();
    gpu_memory();
    CHECK(strcmp(srdma_strerror(0), "success") == 0);
    CHECK(strcmp(srdma_strerror(-ETIMEDOUT), srdma_strerror(ETIMEDOUT)) == 0);
    CHECK(strcmp(srdma_strerror(-9999), "no error of this library") == 0);
    return failures == 0 ? 0 : 1;
}
