/*
 * One file over one RC connection of librdmacm, by SENDs.
 *
 *   rdma_cm connect ADDRESS PORT FILE     the source: sends FILE and disconnects
 *   rdma_cm listen PORT FILE...           a receiver: writes what comes to FILE until the other side disconnects; with
 *                                         several files from as many sources, also at the same time
 *
 * It knows nothing of groups: between two hosts it is an ordinary connection. If ADDRESS is a Proxy Address at which
 * `srdma cm` answers, all receivers get the file.
 *
 *   cc -o rdma_cm rdma_cm.c -lrdmacm -libverbs
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_OCTETS = 64 << 10, /* no message is longer */
    SLOTS = 32,                /* messages under way at the source, receives posted at a receiver */
    PATIENCE_MS = 2000,        /* for address and route */
};

struct slot {
    char octets[MESSAGE_OCTETS];
};

/* Of a thread's connection. */
static _Thread_local struct rdma_event_channel *events;
static _Thread_local struct ibv_comp_channel *completions;
static _Thread_local struct ibv_mr *memory;
static _Thread_local struct slot *slots;

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("rdma_cm: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void check(int result, const char *what)
{
    if (result)
        fail("%s: %s", what, strerror(errno));
}

/* The next event, which is acknowledged. Private data are text here. */
static struct rdma_cm_event next_event(void)
{
    struct rdma_cm_event *event, copy;

    check(rdma_get_cm_event(events, &event), "event");
    copy = *event;
    printf("%s %d", rdma_event_str(event->event), event->status);
    if (event->param.conn.private_data_len)
        printf(" [%.*s]", event->param.conn.private_data_len, (const char *)event->param.conn.private_data);
    putchar('\n');
    fflush(stdout);
    rdma_ack_cm_event(event);
    return copy;
}

static struct rdma_cm_event expect(enum rdma_cm_event_type type)
{
    struct rdma_cm_event event = next_event();

    if (event.event != type)
        fail("expected %s", rdma_event_str(type));
    return event;
}

/* A queue pair, and memory for messages. */
static void open_pair(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attributes = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = { .max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_cq *queue;

    completions = ibv_create_comp_channel(id->verbs);
    if (!completions)
        fail("no completion channel");
    queue = ibv_create_cq(id->verbs, 2 * SLOTS, NULL, completions, 0);
    if (!queue)
        fail("no completion queue");
    check(ibv_req_notify_cq(queue, 0), "notification");
    attributes.send_cq = attributes.recv_cq = queue;
    check(rdma_create_qp(id, NULL, &attributes), "queue pair");
    slots = aligned_alloc(4096, SLOTS * sizeof(*slots));
    if (!slots)
        fail("no memory");
    memset(slots, 0, SLOTS * sizeof(*slots));
    memory = ibv_reg_mr(id->pd, slots, SLOTS * sizeof(*slots), IBV_ACCESS_LOCAL_WRITE);
    if (!memory)
        fail("memory region: %s", strerror(errno));
}

static struct ibv_sge piece(int slot, size_t octets)
{
    return (struct ibv_sge){ .addr = (uintptr_t)&slots[slot], .length = octets, .lkey = memory->lkey };
}

static void post_receive(struct ibv_qp *pair, int slot)
{
    struct ibv_sge sge = piece(slot, MESSAGE_OCTETS);
    struct ibv_recv_wr request = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

    errno = ibv_post_recv(pair, &request, &bad);
    check(errno, "receive");
}

static void post_send(struct rdma_cm_id *id, int slot, size_t octets)
{
    struct ibv_sge sge = piece(slot, octets);
    struct ibv_send_wr request = { .wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

    errno = ibv_post_send(id->qp, &request, &bad);
    check(errno, "send");
}

/* The next completion; 0 if the queue pair was flushed because the connection is over. */
static int next_completion(struct ibv_qp *pair, struct ibv_wc *completion)
{
    for (;;) {
        struct ibv_cq *queue;
        void *context;
        int count = ibv_poll_cq(pair->send_cq, 1, completion);

        if (count < 0)
            fail("completion queue");
        if (count == 0) {
            check(ibv_get_cq_event(completions, &queue, &context), "completion");
            ibv_ack_cq_events(queue, 1);
            check(ibv_req_notify_cq(queue, 0), "notification");
            /* One may have come before the notification was asked for. */
            count = ibv_poll_cq(pair->send_cq, 1, completion);
            if (count == 0)
                continue;
        }
        if (completion->status == IBV_WC_WR_FLUSH_ERR)
            return 0;
        if (completion->status != IBV_WC_SUCCESS)
            fail("completion: %s", ibv_wc_status_str(completion->status));
        return 1;
    }
}

static void open_channel(void)
{
    events = rdma_create_event_channel();
    if (!events)
        fail("no event channel: %s", strerror(errno));
}

static void *disconnected(void *argument)
{
    struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
    struct rdma_cm_id *id = argument;

    events = id->channel;
    expect(RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(id);
    /* Flushes the receives that wait. */
    ibv_modify_qp(id->qp, &error, IBV_QP_STATE);
    return NULL;
}

/* A connection that was asked for, and the file for its data. */
struct asked {
    struct rdma_cm_id *id;
    const char *path;
};

static void *receive(void *argument)
{
    struct rdma_conn_param parameters = { .private_data = "ready", .private_data_len = 5, .rnr_retry_count = 7 };
    const struct asked *asked = argument;
    struct rdma_cm_id *id = asked->id;
    unsigned long long octets = 0;
    struct ibv_wc completion;
    pthread_t thread;
    FILE *file = fopen(asked->path, "wb");

    if (!file)
        fail("%s: %s", asked->path, strerror(errno));
    open_channel();
    check(rdma_migrate_id(id, events), "event channel");
    open_pair(id);
    for (int slot = 0; slot < SLOTS; slot++)
        post_receive(id->qp, slot);
    check(rdma_accept(id, &parameters), "accept");
    expect(RDMA_CM_EVENT_ESTABLISHED);
    errno = pthread_create(&thread, NULL, disconnected, id);
    check(errno, "thread");
    while (next_completion(id->qp, &completion)) {
        if (fwrite(&slots[completion.wr_id], 1, completion.byte_len, file) != completion.byte_len)
            fail("%s: %s", asked->path, strerror(errno));
        octets += completion.byte_len;
        post_receive(id->qp, completion.wr_id);
    }
    check(fclose(file), asked->path);
    pthread_join(thread, NULL);
    printf("received %llu octets\n", octets);
    fflush(stdout);
    return NULL;
}

static void listen_at(int port, int count, char **paths)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct asked asked[count];
    struct rdma_cm_id *listener;
    pthread_t threads[count];

    check(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP), "identifier");
    check(rdma_bind_addr(listener, (struct sockaddr *)&address), "address");
    check(rdma_listen(listener, count), "listen");
    puts("listening");
    fflush(stdout);
    for (int at = 0; at < count; at++) {
        asked[at] = (struct asked){ .id = expect(RDMA_CM_EVENT_CONNECT_REQUEST).id, .path = paths[at] };
        errno = pthread_create(&threads[at], NULL, receive, &asked[at]);
        check(errno, "thread");
    }
    for (int at = 0; at < count; at++)
        pthread_join(threads[at], NULL);
}

static void connect_to(const char *host, const char *port, const char *path)
{
    struct addrinfo *address, hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
    /* A receiver may have no receive posted for a moment: wait for it for ever. */
    struct rdma_conn_param parameters = {
        .private_data = "file", .private_data_len = 4, .retry_count = 7, .rnr_retry_count = 7,
    };
    unsigned long long octets = 0;
    struct ibv_wc completion;
    int under_way = 0, free_slot = 0;
    struct rdma_cm_id *id;
    FILE *file = fopen(path, "rb");
    size_t length;

    if (!file)
        fail("%s: %s", path, strerror(errno));
    if (getaddrinfo(host, port, &hints, &address))
        fail("%s, %s: no address and port", host, port);
    check(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "identifier");
    check(rdma_resolve_addr(id, NULL, address->ai_addr, PATIENCE_MS), "address");
    freeaddrinfo(address);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, PATIENCE_MS), "route");
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    open_pair(id);
    check(rdma_connect(id, &parameters), "connect");
    expect(RDMA_CM_EVENT_ESTABLISHED);
    /* Slots are sent, and complete, in their order. */
    while ((length = fread(&slots[free_slot], 1, MESSAGE_OCTETS, file)) > 0) {
        post_send(id, free_slot, length);
        octets += length;
        free_slot = (free_slot + 1) % SLOTS;
        if (++under_way == SLOTS) {
            if (!next_completion(id->qp, &completion))
                fail("the connection has ended");
            under_way--;
        }
    }
    for (; under_way; under_way--)
        if (!next_completion(id->qp, &completion))
            fail("the connection has ended");
    check(rdma_disconnect(id), "disconnect");
    expect(RDMA_CM_EVENT_DISCONNECTED);
    printf("sent %llu octets\n", octets);
}

int main(int argc, char **argv)
{
    open_channel();
    if (argc >= 4 && !strcmp(argv[1], "listen"))
        listen_at(atoi(argv[2]), argc - 3, argv + 3);
    else if (argc == 5 && !strcmp(argv[1], "connect"))
        connect_to(argv[2], argv[3], argv[4]);
    else
        fail("usage: rdma_cm listen PORT FILE... | rdma_cm connect ADDRESS PORT FILE");
    return 0;
}
