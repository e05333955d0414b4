/* A source, or a receiver, that says what has become of each version: the program of the lab tests of providers.
 *
 *   versions source PROXY RECEIVERS VERSIONS OCTETS [damage V] [pause MS] [stall MS] [last FILE]
 *       [digest crc]
 *   versions receive GROUP [slow MS] [hold FILE] [memory OCTETS] [shared DIRECTORY]
 *   versions open
 *
 * `hold` keeps versions, as many as there are slots, until FILE exists; `last` publishes the last version when it does.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <srdma.h>

#define PATIENCE_MS 120000

static long arguments_of(int count, char **words, const char *name, long otherwise)
{
    for (int i = 0; i + 1 < count; i++)
        if (strcmp(words[i], name) == 0)
            return strtol(words[i + 1], NULL, 10);
    return otherwise;
}

static const char *text_of(int count, char **words, const char *name)
{
    for (int i = 0; i + 1 < count; i++)
        if (strcmp(words[i], name) == 0)
            return words[i + 1];
    return NULL;
}

static void check(int result, const char *what)
{
    if (result >= 0)
        return;
    printf("error %d %s: %s\n", -result, what, srdma_last_message());
    exit(1);
}

/* A connection to the controller takes longer than its timeout, five seconds, when the machine is loaded and packets are
 * lost. */
#define RETRY(call, what)                                                                                               \
    do {                                                                                                                \
        int result = call;                                                                                              \
        for (int attempts = 1; result == -ECONNREFUSED && attempts < 10; attempts++)                                    \
            result = call;                                                                                              \
        check(result, what);                                                                                            \
    } while (0)

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* The octets of a buffer depend on version, number and place alone. */
static unsigned char octet(uint64_t version, uint64_t number, size_t place)
{
    uint64_t word = (version << 48 ^ number << 40 ^ place / 8) * 0x9e3779b97f4a7c15;
    return (unsigned char)(word >> 8 * (place % 8));
}

static int is_right(uint64_t version, uint64_t number, const struct srdma_buffer *buffer)
{
    const unsigned char *octets = buffer->base;
    for (size_t i = 0; i < buffer->length; i++)
        if (octets[i] != octet(version, number, i))
            return 0;
    return 1;
}

/* Changes a buffer while it is sent. */
struct change {
    volatile unsigned char *octets;
    size_t length;
    volatile int is_over;
};

static void *changes(void *argument)
{
    struct change *change = argument;
    while (!change->is_over)
        for (size_t i = 0; i < change->length; i += 512)
            change->octets[i]++;
    return NULL;
}

static void publish(struct srdma_group *group, uint64_t version, struct srdma_buffer *buffers, int is_damaged)
{
    struct srdma_event event = {.size = sizeof event};
    struct change change = {.octets = (unsigned char *)(uintptr_t)buffers[0].base, .length = buffers[0].length};
    pthread_t thread;
    long begin = now_ms();
    int result;

    if (is_damaged && pthread_create(&thread, NULL, changes, &change) != 0)
        exit(1);
    check(srdma_publish(group, version, buffers, 4), "publish");
    result = srdma_wait(group, version, PATIENCE_MS);
    if (is_damaged) {
        change.is_over = 1;
        pthread_join(thread, NULL);
    }
    while (srdma_next_event(group, &event) == 0) {
        if (event.kind == SRDMA_EVENT_SLOW)
            printf("slow %" PRIu64 "\n", event.version);
        if (event.kind == SRDMA_EVENT_FAILED || event.kind == SRDMA_EVENT_OVER)
            printf("event %d %" PRIu64 ": %s\n", (int)event.kind, event.version, event.message);
    }
    check(result, "wait");
    printf("published %" PRIu64 " %ld ms\n", version, now_ms() - begin);
}

static void source(struct srdma *device, int count, char **words)
{
    size_t octets = strtoul(words[3], NULL, 10);
    long versions = strtol(words[2], NULL, 10), damaged = arguments_of(count, words, "damage", 0);
    struct srdma_group_options options = {.size = sizeof options,
                                          .proxy = words[0],
                                          .slot_octets = octets + 256,
                                          .slow_after_ms = 300,
                                          .stall_ms = (uint32_t)arguments_of(count, words, "stall", 0),
                                          .digest = text_of(count, words, "digest") ? SRDMA_DIGEST_CRC32 : 0};
    size_t lengths[4] = {octets / 2, 1, octets - octets / 2 - 1, 0};
    const char *names[4] = {"half", "one", "rest", "none"}, *last = text_of(count, words, "last");
    unsigned char *data = malloc(octets);
    struct srdma_buffer buffers[4];
    struct srdma_group *group;
    uint32_t number;

    if (data == NULL)
        exit(1);
    for (size_t i = 0, first = 0; i < 4; first += lengths[i], i++)
        buffers[i] = (struct srdma_buffer){.name = names[i], .base = data + first, .length = lengths[i]};
    RETRY(srdma_group_create(device, &options, &group), "create");
    check(srdma_group_number(group, &number), "number");
    printf("group %" PRIu32 "\n", number);
    RETRY(srdma_group_commit(group, (uint32_t)strtoul(words[1], NULL, 10), PATIENCE_MS), "commit");
    printf("committed\n");
    for (uint64_t version = 1; version <= (uint64_t)versions; version++) {
        /* The last one waits for this file. */
        for (long begin = now_ms(); last && version == (uint64_t)versions && access(last, F_OK) != 0; sleep_ms(50))
            if (now_ms() - begin > PATIENCE_MS)
                exit(1);
        for (uint64_t i = 0; i < 4; i++)
            for (size_t place = 0; place < lengths[i]; place++)
                ((unsigned char *)(uintptr_t)buffers[i].base)[place] = octet(version, i, place);
        publish(group, version, buffers, (uint64_t)damaged == version);
        sleep_ms(arguments_of(count, words, "pause", 0));
    }
    check(srdma_group_close(group), "close");
    printf("closed\n");
    free(data);
}

static void show(struct srdma_version *version)
{
    uint64_t number = srdma_version_number(version);
    const char *names[4] = {"half", "one", "rest", "none"};
    int right = 1;

    for (uint64_t i = 0; i < 4; i++) {
        struct srdma_buffer buffer;
        check(srdma_version_find(version, names[i], &buffer), "find");
        right = right && is_right(number, i, &buffer);
    }
    printf("version %" PRIu64 " %s\n", number, right ? "right" : "wrong");
}

static void receive(struct srdma *device, int count, char **words)
{
    const char *hold = text_of(count, words, "hold");
    size_t length = (size_t)arguments_of(count, words, "memory", 0);
    void *memory = length ? malloc(length) : NULL;
    const char *shared = text_of(count, words, "shared");
    struct srdma_join_options options = {.size = sizeof options,
                                         .base = memory,
                                         .length = length,
                                         .runtime_directory = shared,
                                         .flags = shared ? SRDMA_JOIN_SHARED : 0};
    struct srdma_event event = {.size = sizeof event};
    struct srdma_version *held[64];
    size_t kept = 0;
    struct srdma_group *group;
    struct pollfd poll_fd = {.events = POLLIN};
    int is_over = 0;

    RETRY(srdma_group_join_with(device, (uint32_t)strtoul(words[0], NULL, 10), &options, &group), "join");
    printf("requested\n");
    poll_fd.fd = srdma_fd(group);
    while (!is_over) {
        poll(&poll_fd, 1, hold ? 50 : -1);
        if (hold && access(hold, F_OK) == 0) {
            for (size_t i = 0; i < kept; i++) {
                /* Nothing has written to it. */
                show(held[i]);
                srdma_release(held[i]);
            }
            hold = NULL;
        }
        while (!is_over && srdma_next_event(group, &event) == 0) {
            switch (event.kind) {
            case SRDMA_EVENT_JOINED:
                printf("joined\n");
                break;
            case SRDMA_EVENT_VERSION: {
                struct srdma_version *version;
                check(srdma_take(group, 0, &version), "take");
                show(version);
                sleep_ms(arguments_of(count, words, "slow", 0));
                if (hold)
                    held[kept++] = version;
                else
                    srdma_release(version);
                break;
            }
            case SRDMA_EVENT_REJECTED:
                printf("rejected %" PRIu64 ": %s\n", event.version, event.message);
                break;
            case SRDMA_EVENT_OVER:
                printf("over %d: %s\n", -event.error, event.message);
                is_over = 1;
                break;
            default:
                break;
            }
        }
    }
    if (hold)
        for (size_t i = 0; i < kept; i++) {
            show(held[i]);
            srdma_release(held[i]);
        }
    srdma_group_close(group);
    free(memory);
}

int main(int count, char **words)
{
    struct srdma *device;

    setvbuf(stdout, NULL, _IOLBF, 0);
    check(srdma_open(NULL, &device), "open");
    if (count > 5 && strcmp(words[1], "source") == 0)
        source(device, count - 2, words + 2);
    else if (count > 2 && strcmp(words[1], "receive") == 0)
        receive(device, count - 2, words + 2);
    srdma_close(device);
    printf("ended\n");
    return 0;
}
