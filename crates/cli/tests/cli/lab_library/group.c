/* A group's source, or a receiver, with every error at the call that causes it. Run by the lab test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void source(struct srdma *device, const char *proxy)
{
    static unsigned char data[4097];
    struct srdma_group_options options = {.size = sizeof options, .proxy = proxy, .slot_octets = 4096};
    struct srdma_buffer buffers[2] = {{"a", data, 4000}, {"b", data, 97}};
    struct srdma_event event = {.size = sizeof event};
    struct srdma_statistics statistics = {.size = sizeof statistics};
    struct srdma_group *group = NULL, *second = NULL;
    struct srdma_version *version = NULL;
    uint32_t number = 0;
    uint64_t count;
    pid_t child;
    int status;

    CHECK(srdma_group_create(device, &options, &group) == 0);
    if (group == NULL)
        return;
    CHECK(srdma_group_number(group, &number) == 0 && number > 0);
    CHECK(srdma_group_create(device, &options, &second) == -EPERM && second == NULL);
    CHECK(srdma_group_commit(group, 1, 50) == -ETIMEDOUT && strstr(srdma_last_message(), "0 of 1") != NULL);
    CHECK(srdma_take(group, 0, &version) == -EINVAL && strstr(srdma_last_message(), "receiver") != NULL);
    CHECK(srdma_next_event(group, &event) == -EAGAIN);
    event.size = 3;
    CHECK(srdma_next_event(group, &event) == -EINVAL);
    event.size = sizeof event;

    CHECK(srdma_publish(group, 7, buffers, 2) == -ENOSPC && strstr(srdma_last_message(), "buffer 1 ends beyond") != NULL);
    buffers[1].length = 64;
    buffers[1].name = "a";
    CHECK(srdma_publish(group, 7, buffers, 2) == -EINVAL);
    buffers[1].name = NULL;
    CHECK(srdma_publish(group, 7, buffers, 2) == -EINVAL);
    buffers[1].name = "b";
    buffers[1].base = NULL;
    CHECK(srdma_publish(group, 7, buffers, 2) == -EINVAL);
    buffers[1].base = data;
    CHECK(srdma_publish(group, 7, NULL, 2) == -EINVAL);
    CHECK(srdma_publish(group, 7, buffers, 2) == 0);
    CHECK(srdma_publish(group, 7, buffers, 2) == -EALREADY);
    for (count = 8; srdma_publish(group, count, NULL, 0) == 0; count++)
        ;
    CHECK(srdma_publish(group, count, NULL, 0) == -EAGAIN && count == 7 + 64);
    CHECK(srdma_group_statistics(group, &statistics) == 0);
    CHECK(statistics.size == sizeof statistics && statistics.versions == 0 && statistics.waiting == 64);
    statistics.size = 7;
    CHECK(srdma_group_statistics(group, &statistics) == -EINVAL && strstr(srdma_last_message(), "size is 7") != NULL);
    CHECK(srdma_wait(group, 7, 50) == -ETIMEDOUT);
    CHECK(srdma_wait(group, 6, 50) == -ENOENT);

    /* The handle is the parent's: in the child every call fails by name, and none hangs. */
    fflush(stdout);
    child = fork();
    if (child == 0) {
        CHECK(srdma_publish(group, 900, NULL, 0) == -ECHILD);
        CHECK(srdma_wait(group, 7, -1) == -ECHILD);
        CHECK(srdma_next_event(group, &event) == -ECHILD);
        CHECK(srdma_group_commit(group, 1, -1) == -ECHILD);
        CHECK(srdma_group_close(group) == -ECHILD);
        fflush(stdout);
        _exit(failures);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    /* What was published fails with the group, and the events say so. */
    CHECK(srdma_group_close(group) == 0);
}

static void receiver(struct srdma *device, uint32_t number)
{
    size_t length = 2 * 4096;
    unsigned char *memory = malloc(length);
    struct srdma_group *group = NULL, *second = NULL;
    struct srdma_version *version = NULL;
    struct srdma_buffer buffer;
    pid_t child;
    int status;

    CHECK(srdma_group_join(device, 999, NULL, 0, &group) == -ENOENT && group == NULL);
    CHECK(srdma_group_join(device, number, memory, length - 1, &group) == -ENOSPC);
    CHECK(strstr(srdma_last_message(), "8191") != NULL);
    CHECK(srdma_group_join(device, number, memory, length, &group) == 0);
    if (group == NULL)
        return;
    CHECK(srdma_group_join(device, number, NULL, 0, &second) == -EADDRINUSE && second == NULL);
    CHECK(srdma_publish(group, 1, NULL, 0) == -EINVAL);
    CHECK(srdma_group_commit(group, 1, 0) == -EINVAL);
    CHECK(srdma_take(group, 50, &version) == -ETIMEDOUT && version == NULL);
    printf("waiting\n");
    fflush(stdout);
    CHECK(srdma_take(group, 30000, &version) == 0);
    if (version == NULL)
        return;
    CHECK(srdma_version_number(version) == 1 && srdma_version_buffers(version) == 2);
    CHECK(srdma_version_buffer(version, 2, &buffer) == -ENOENT);
    CHECK(srdma_version_find(version, "c", &buffer) == -ENOENT);
    CHECK(srdma_version_buffer(version, 1, &buffer) == 0 && buffer.length == 0 && strcmp(buffer.name, "empty") == 0);
    CHECK(srdma_version_find(version, "ones", &buffer) == 0 && buffer.length == 100);
    /* In the memory of the program, not copied. */
    CHECK((const unsigned char *)buffer.base == memory);
    for (size_t i = 0; i < 100; i++)
        CHECK(memory[i] == 1);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        srdma_release(version);
        CHECK(srdma_take(group, -1, &version) == -ECHILD);
        CHECK(srdma_group_close(group) == -ECHILD);
        fflush(stdout);
        _exit(failures);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    srdma_release(version);
    CHECK(srdma_take(group, 30000, &version) == -ESHUTDOWN);
    CHECK(srdma_group_close(group) == 0);
    /* Nothing writes it any more. */
    free(memory);
}

int main(int count, char **arguments)
{
    struct srdma *device = NULL;

    if (count != 3 || srdma_open(NULL, &device) != 0) {
        printf("%s\n", srdma_last_message());
        return 2;
    }
    if (strcmp(arguments[1], "source") == 0)
        source(device, arguments[2]);
    else
        receiver(device, (uint32_t)atoi(arguments[2]));
    srdma_close(device);
    return failures == 0 ? 0 : 1;
}
