/* One source sends versions of a buffer to several receivers of a group.
 *
 *   cc -o broadcast broadcast.c $(pkg-config --cflags --libs srdma)
 *   ./broadcast source --proxy 2001:db8:cc::1 --receivers 2 --versions 10 --octets 4194304
 *   ./broadcast receive 1                                  # the group's number, which the source prints
 *   ./broadcast receive 1 --shared                         # several processes of a host, which share one receiver
 *
 * A source that was killed goes on behind a version: broadcast source --resume 1 --after 6 ..., and its receivers with it.
 *
 * The controller is that of $SRDMA_CONTROLLER, the token that of $SRDMA_TOKEN_FILE, the certificate that of $SRDMA_CA.
 * Both print a line for each version, with a checksum; docs/applications.md explains the calls.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <srdma.h>

static void fail(const char *what)
{
    fprintf(stderr, "broadcast: %s: %s\n", what, srdma_last_message());
    exit(1);
}

static void check(int result, const char *what)
{
    if (result < 0)
        fail(what);
}

/* FNV-1a: enough to compare what was sent with what was received. */
static uint64_t checksum(const struct srdma_buffer *buffer)
{
    uint64_t sum = 0xcbf29ce484222325;
    const unsigned char *octets = buffer->base;
    for (size_t i = 0; i < buffer->length; i++)
        sum = (sum ^ octets[i]) * 0x100000001b3;
    return sum;
}

static void print_version(uint64_t version, const struct srdma_buffer *buffer)
{
    printf("version %" PRIu64 " %zu %016" PRIx64 "\n", version, buffer->length, checksum(buffer));
    fflush(stdout);
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* What a source sends. */
struct plan {
    const char *proxy;
    long receivers, after, versions, pause_ms;
    /* The group whose source has died, or -1. */
    long resumes;
    size_t octets;
};

static void source(struct srdma *device, const struct plan *plan)
{
    size_t octets = plan->octets;
    struct srdma_group_options options = {
        .size = sizeof options, .name = "broadcast", .proxy = plan->proxy, .slot_octets = octets, .slow_after_ms = 200};
    struct srdma_buffer buffer = {.name = "data", .length = octets};
    struct srdma_group *group;
    unsigned char *data = malloc(octets);
    uint32_t number;

    if (data == NULL) {
        fprintf(stderr, "broadcast: there is no memory of %zu octets\n", octets);
        exit(1);
    }
    buffer.base = data;
    if (plan->resumes < 0)
        check(srdma_group_create(device, &options, &group), "cannot create a group");
    else
        check(srdma_group_resume(device, (uint32_t)plan->resumes, &options, &group), "cannot resume the group");
    check(srdma_group_number(group, &number), "group");
    printf("group %" PRIu32 "\n", number);
    fflush(stdout);
    check(srdma_group_commit(group, (uint32_t)plan->receivers, 60000), "the group is not ready");
    for (uint64_t version = (uint64_t)plan->after + 1; version <= (uint64_t)plan->versions; version++) {
        struct srdma_event event = {.size = sizeof event};
        for (size_t i = 0; i < octets; i++)
            data[i] = (unsigned char)((i * 31) ^ (i >> 8) ^ version);
        check(srdma_publish(group, version, &buffer, 1), "cannot publish");
        /* The buffer is in use until every receiver has it. */
        check(srdma_wait(group, version, 60000), "not published");
        while (srdma_next_event(group, &event) == 0)
            if (event.kind == SRDMA_EVENT_SLOW)
                printf("slow %" PRIu64 "\n", event.version);
        print_version(version, &buffer);
        sleep_ms(plan->pause_ms);
    }
    check(srdma_group_close(group), "cannot close the group");
    free(data);
}

static void print_event(const char *what, uint64_t number, const char *message)
{
    printf("%s %" PRIu64 "%s%s\n", what, number, *message == '\0' ? "" : ": ", message);
    fflush(stdout);
}

/* Handles all events; false when there will be no more. */
static int handle_events(struct srdma_group *group, long slow_ms)
{
    struct srdma_event event = {.size = sizeof event};
    struct srdma_version *version;
    struct srdma_buffer buffer;
    int result;

    while ((result = srdma_next_event(group, &event)) == 0) {
        switch (event.kind) {
        case SRDMA_EVENT_JOINED:
            printf("joined\n");
            fflush(stdout);
            break;
        case SRDMA_EVENT_RESUMED:
            /* The source has started again; what is held stays as it is. */
            printf("resumed\n");
            fflush(stdout);
            break;
        case SRDMA_EVENT_VERSION:
            check(srdma_take(group, 0, &version), "cannot take the version");
            check(srdma_version_find(version, "data", &buffer), "data");
            if (slow_ms > 0)
                print_event("taken", srdma_version_number(version), "");
            sleep_ms(slow_ms);
            print_version(srdma_version_number(version), &buffer);
            /* Its slot is free for a later version. */
            srdma_release(version);
            break;
        case SRDMA_EVENT_REJECTED:
            printf("rejected %" PRIu64 ": %s\n", event.version, event.message);
            break;
        case SRDMA_EVENT_RANK_ATTACHED:
            print_event("attached", event.version, event.message);
            break;
        case SRDMA_EVENT_RANK_DETACHED:
            print_event("detached", event.version, event.message);
            break;
        case SRDMA_EVENT_RANK_HOLDS:
            print_event("held", event.version, event.message);
            break;
        case SRDMA_EVENT_OWNER_LOST:
            printf("owner lost\n");
            fflush(stdout);
            break;
        case SRDMA_EVENT_OVER:
            printf("over: %s\n", event.message);
            if (event.error != -ESHUTDOWN)
                exit(1);
            return 0;
        default:
            break;
        }
    }
    if (result != -EAGAIN)
        fail("events");
    return 1;
}

static void receive(struct srdma *device, uint32_t number, long slow_ms, uint32_t flags)
{
    struct srdma_join_options options = {.size = sizeof options, .flags = flags};
    struct srdma_group *group;
    struct pollfd poll_fd = {.events = POLLIN};

    check(srdma_group_join_with(device, number, &options, &group), "cannot join");
    poll_fd.fd = srdma_fd(group);
    check(poll_fd.fd, "descriptor");
    do {
        if (poll(&poll_fd, 1, -1) < 0 && errno != EINTR) {
            perror("broadcast: poll");
            exit(1);
        }
    } while (handle_events(group, slow_ms));
    check(srdma_group_close(group), "cannot leave");
}

static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 0) {
        fprintf(stderr, "broadcast: %s is no number\n", text);
        exit(2);
    }
    return value;
}

static const char USAGE[] =
    "usage: broadcast source [--proxy ADDRESS] [--receivers N] [--versions N] [--octets N] [--pause MS]\n"
    "                        [--resume GROUP] [--after VERSION]\n"
    "       broadcast receive GROUP [--shared] [--slow MS]\n";

int main(int count, char **arguments)
{
    struct plan plan = {.receivers = 1, .versions = 10, .octets = 4 << 20, .resumes = -1};
    long slow_ms = 0;
    uint32_t flags = 0;
    struct srdma *device;
    int is_source = count > 1 && strcmp(arguments[1], "source") == 0;
    int first = is_source ? 2 : 3;

    if (!is_source && (count < 3 || strcmp(arguments[1], "receive") != 0)) {
        fputs(USAGE, stderr);
        return 2;
    }
    for (int i = first; i < count; i += 2) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        if (!is_source && strcmp(arguments[i], "--shared") == 0) {
            flags |= SRDMA_JOIN_SHARED;
            i--; /* It has no value. */
        } else if (is_source && strcmp(arguments[i], "--proxy") == 0)
            plan.proxy = value;
        else if (is_source && strcmp(arguments[i], "--receivers") == 0)
            plan.receivers = number(value);
        else if (is_source && strcmp(arguments[i], "--versions") == 0)
            plan.versions = number(value);
        else if (is_source && strcmp(arguments[i], "--octets") == 0)
            plan.octets = (size_t)number(value);
        else if (is_source && strcmp(arguments[i], "--pause") == 0)
            plan.pause_ms = number(value);
        else if (is_source && strcmp(arguments[i], "--resume") == 0)
            plan.resumes = number(value);
        else if (is_source && strcmp(arguments[i], "--after") == 0)
            plan.after = number(value);
        else if (!is_source && strcmp(arguments[i], "--slow") == 0)
            slow_ms = number(value);
        else {
            fputs(USAGE, stderr);
            return 2;
        }
    }
    check(srdma_open(NULL, &device), "cannot open");
    if (is_source)
        source(device, &plan);
    else
        receive(device, (uint32_t)number(arguments[2]), slow_ms, flags);
    srdma_close(device);
    return 0;
}
