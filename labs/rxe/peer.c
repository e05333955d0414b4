/*
 * peer: RC queue pairs of one soft-RoCE host, driven by lines on the standard input.
 *
 *   peer OCTETS PATH-MTU ACK-TIMEOUT [ADDRESS]
 *
 * registers one buffer of OCTETS for all its queue pairs, whose GID is ADDRESS, or else the first global IPv6 address. Nothing is agreed with anybody: address, QPN and PSN of the
 * other end are what `connect` says, so that a queue pair can be pointed at a Proxy Address and a Designated QPN.
 * Numbers are as in C. Each command is answered with one line, OK or ERR first:
 *
 *   (start)                                    OK address=A rkey=K base=B
 *   open PSN                                   OK qp=I qpn=Q            a queue pair; PSN is the first it sends
 *   connect I ADDRESS QPN PSN [TRAFFIC-CLASS]  OK
 *   fill SEED                                  OK                       a pattern into the whole buffer; 0 clears it
 *   sha256 OFFSET OCTETS                       OK sha256=S
 *   counter NAME                               OK count=N               of the RDMA device
 *   write I OFFSET OCTETS MESSAGE RKEY ADDRESS OK                       to be written, in messages of that length
 *   send I OFFSET OCTETS MESSAGE [IMMEDIATE]   OK                       to be sent
 *   run MILLISECONDS                           OK us=T                  does all that; how long it took
 *   receive I OFFSET OCTETS MESSAGE            OK                       posts buffers for what will be sent
 *   wait COUNT MILLISECONDS                    OK octets=N              until so many messages have been received
 *   quit
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <linux/if_alg.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_PAIRS 64
#define WORK_REQUESTS 4096
/* Requests of one transfer that are posted at a time. */
#define DEPTH 16

/* What a queue pair has to write or send. */
struct transfer {
    enum ibv_wr_opcode opcode;
    uint32_t immediate;
    uint64_t offset, octets, message, posted, done;
    uint64_t address;
    uint32_t rkey;
};

static struct ibv_context *context;
static struct ibv_pd *domain;
static struct ibv_cq *completions;
static struct ibv_mr *region;
static struct ibv_qp *pairs[QUEUE_PAIRS];
static uint32_t first_psn[QUEUE_PAIRS];
static struct transfer transfers[QUEUE_PAIRS];
static int pair_count, gid_index;
static union ibv_gid gid;
static uint8_t *buffer;
static uint64_t buffer_octets;
static enum ibv_mtu path_mtu;
static int ack_timeout;

static void answer(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static void error(const char *what)
{
    answer("ERR %s: %s", what, strerror(errno));
}

static _Noreturn void give_up(const char *what)
{
    error(what);
    exit(1);
}

static uint64_t microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static struct ibv_qp *open_pair(void)
{
    struct ibv_qp_init_attr capacity = {
        .qp_type = IBV_QPT_RC,
        .send_cq = completions,
        .recv_cq = completions,
        .cap = { .max_send_wr = 2 * DEPTH, .max_recv_wr = WORK_REQUESTS, .max_send_sge = 1, .max_recv_sge = 1 },
    };
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    };
    struct ibv_qp *pair = ibv_create_qp(domain, &capacity);

    if (!pair)
        return NULL;
    errno = ibv_modify_qp(pair, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return errno ? NULL : pair;
}

/* The kernel resolves the address to a MAC address in here. */
static int connect_pair(int index, const struct in6_addr *address, uint32_t qpn, uint32_t psn, uint8_t traffic_class)
{
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = path_mtu,
        .dest_qp_num = qpn,
        .rq_psn = psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .grh = { .sgid_index = gid_index, .hop_limit = 64, .traffic_class = traffic_class },
        },
    };
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = first_psn[index],
        .timeout = ack_timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };

    memcpy(&receive.ah_attr.grh.dgid, address, sizeof(*address));
    errno = ibv_modify_qp(pairs[index], &receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                          IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (!errno)
        errno = ibv_modify_qp(pairs[index], &send, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                              IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    return errno;
}

static struct ibv_sge part(uint64_t offset, uint64_t octets)
{
    return (struct ibv_sge) { .addr = (uintptr_t)buffer + offset, .length = octets, .lkey = region->lkey };
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Posts what a transfer may have under way. */
static int post(int index)
{
    struct transfer *t = &transfers[index];

    while (t->posted < t->octets && t->posted - t->done < DEPTH * t->message) {
        struct ibv_sge sge = part(t->offset + t->posted, least(t->message, t->octets - t->posted));
        struct ibv_send_wr *bad, request = {
            .wr_id = index,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = t->opcode,
            .imm_data = htonl(t->immediate),
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = { .remote_addr = t->address + t->posted, .rkey = t->rkey },
        };

        errno = ibv_post_send(pairs[index], &request, &bad);
        if (errno)
            return errno;
        t->posted += sge.length;
    }
    return 0;
}

/* One completion; 0 if none comes in time. */
static int complete(struct ibv_wc *completion, uint64_t deadline)
{
    int count;

    while ((count = ibv_poll_cq(completions, 1, completion)) == 0 && microseconds() < deadline)
        usleep(1000);
    return count;
}

static void run(uint64_t milliseconds)
{
    uint64_t start = microseconds(), deadline = start + milliseconds * 1000, octets = 0, done = 0;
    struct ibv_wc completion;

    for (int i = 0; i < pair_count; i++) {
        octets += transfers[i].octets;
        if (post(i)) {
            error("cannot post");
            return;
        }
    }
    while (done < octets) {
        struct transfer *t;

        if (complete(&completion, deadline) <= 0) {
            answer("ERR %" PRIu64 " of %" PRIu64 " octets in time", done, octets);
            return;
        }
        t = &transfers[completion.wr_id];
        if (completion.status) {
            answer("ERR queue pair %d: %s after %" PRIu64 " octets", (int)completion.wr_id,
                   ibv_wc_status_str(completion.status), t->done);
            return;
        }
        done += least(t->message, t->octets - t->done);
        t->done += least(t->message, t->octets - t->done);
        if (post(completion.wr_id)) {
            error("cannot post");
            return;
        }
    }
    answer("OK us=%" PRIu64, microseconds() - start);
    memset(transfers, 0, sizeof(transfers));
}

static void receive(int index, uint64_t offset, uint64_t octets, uint64_t message)
{
    for (uint64_t at = 0; at < octets; at += message) {
        struct ibv_sge sge = part(offset + at, least(message, octets - at));
        struct ibv_recv_wr *bad, request = { .sg_list = &sge, .num_sge = 1 };

        errno = ibv_post_recv(pairs[index], &request, &bad);
        if (errno) {
            error("cannot post");
            return;
        }
    }
    answer("OK");
}

static void wait_for(uint64_t count, uint64_t milliseconds)
{
    uint64_t deadline = microseconds() + milliseconds * 1000, octets = 0;
    struct ibv_wc completion;

    for (uint64_t done = 0; done < count; done++) {
        if (complete(&completion, deadline) <= 0) {
            answer("ERR %" PRIu64 " of %" PRIu64 " messages in time", done, count);
            return;
        }
        if (completion.status) {
            answer("ERR %s after %" PRIu64 " messages", ibv_wc_status_str(completion.status), done);
            return;
        }
        octets += completion.byte_len;
    }
    answer("OK octets=%" PRIu64, octets);
}

static void fill(uint64_t seed)
{
    uint64_t x = seed;

    /* xorshift64: a seed of 0 stays 0. */
    for (uint64_t i = 0; i < buffer_octets; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        buffer[i] = x;
    }
    answer("OK");
}

/* The kernel computes it. */
static void sha256(uint64_t offset, uint64_t octets)
{
    struct sockaddr_alg algorithm = { .salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha256" };
    int hasher = socket(AF_ALG, SOCK_SEQPACKET, 0), hash = -1;
    uint8_t digest[32];
    char text[2 * sizeof(digest) + 1];

    if (hasher >= 0 && !bind(hasher, (struct sockaddr *)&algorithm, sizeof(algorithm)))
        hash = accept(hasher, NULL, NULL);
    for (uint64_t i = 0, part; hash >= 0 && i < octets; i += part) {
        part = least(octets - i, 1 << 16);
        if (send(hash, buffer + offset + i, part, MSG_MORE) != (ssize_t)part)
            break;
    }
    if (hash >= 0 && !send(hash, NULL, 0, 0) && read(hash, digest, sizeof(digest)) == sizeof(digest)) {
        for (unsigned int i = 0; i < sizeof(digest); i++)
            sprintf(text + 2 * i, "%02x", digest[i]);
        answer("OK sha256=%s", text);
    } else {
        error("cannot hash");
    }
    close(hash);
    close(hasher);
}

static void counter(const char *name)
{
    char path[128];
    uint64_t count;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
             ibv_get_device_name(context->device), name);
    file = fopen(path, "r");
    if (file && fscanf(file, "%" SCNu64, &count) == 1)
        answer("OK count=%" PRIu64, count);
    else
        error(path);
    if (file)
        fclose(file);
}

/* Complains when it is not so. */
static int is_in_buffer(uint64_t offset, uint64_t octets)
{
    if (octets <= buffer_octets && offset <= buffer_octets - octets)
        return 1;
    answer("ERR not in the buffer");
    return 0;
}

static int is_transfer(uint64_t index, uint64_t offset, uint64_t octets, uint64_t message)
{
    if (index < (unsigned)pair_count && message > 0)
        return is_in_buffer(offset, octets);
    answer("ERR no such queue pair, or no messages");
    return 0;
}

static void command(char *line)
{
    char verb[16] = "", where[INET6_ADDRSTRLEN] = "";
    unsigned long long n[6] = { 0 };
    char *word, *rest;
    int count = 0;

    for (word = strtok_r(line, " \r\n", &rest); word; word = strtok_r(NULL, " \r\n", &rest)) {
        if (!*verb)
            snprintf(verb, sizeof(verb), "%s", word);
        else if (strchr(word, ':') || !strcmp(verb, "counter"))
            snprintf(where, sizeof(where), "%s", word);
        else if (count < 6)
            n[count++] = strtoull(word, NULL, 0);
    }
    if (!strcmp(verb, "open")) {
        if (pair_count == QUEUE_PAIRS || !(pairs[pair_count] = open_pair())) {
            error("cannot open a queue pair");
            return;
        }
        first_psn[pair_count] = n[0];
        answer("OK qp=%d qpn=0x%06x", pair_count, pairs[pair_count]->qp_num);
        pair_count++;
    } else if (!strcmp(verb, "connect")) {
        struct in6_addr address;

        if (inet_pton(AF_INET6, where, &address) != 1 || n[0] >= (unsigned)pair_count)
            answer("ERR no such address or queue pair");
        else if (connect_pair(n[0], &address, n[1], n[2], n[3]))
            error("cannot connect");
        else
            answer("OK");
    } else if (!strcmp(verb, "fill")) {
        fill(n[0]);
    } else if (!strcmp(verb, "sha256")) {
        if (is_in_buffer(n[0], n[1]))
            sha256(n[0], n[1]);
    } else if (!strcmp(verb, "counter")) {
        counter(where);
    } else if (!strcmp(verb, "write")) {
        if (!is_transfer(n[0], n[1], n[2], n[3]))
            return;
        transfers[n[0]] = (struct transfer) {
            .opcode = IBV_WR_RDMA_WRITE,
            .offset = n[1], .octets = n[2], .message = n[3], .rkey = n[4], .address = n[5],
        };
        answer("OK");
    } else if (!strcmp(verb, "send")) {
        if (!is_transfer(n[0], n[1], n[2], n[3]))
            return;
        transfers[n[0]] = (struct transfer) {
            .opcode = count > 4 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
            .offset = n[1], .octets = n[2], .message = n[3], .immediate = n[4],
        };
        answer("OK");
    } else if (!strcmp(verb, "run")) {
        run(n[0]);
    } else if (!strcmp(verb, "receive")) {
        if (is_transfer(n[0], n[1], n[2], n[3]))
            receive(n[0], n[1], n[2], n[3]);
    } else if (!strcmp(verb, "wait")) {
        wait_for(n[0], n[1]);
    } else if (!strcmp(verb, "quit")) {
        exit(0);
    } else {
        answer("ERR no such command");
    }
}

/* An address, which in IPv4 is an IPv4-mapped one, or the first global one of IPv6. */
static void find_address(const char *text)
{
    struct in6_addr wanted;

    if (text && inet_pton(AF_INET6, text, &wanted) != 1) {
        errno = EINVAL;
        give_up(text);
    }
    for (gid_index = 0; !ibv_query_gid(context, 1, gid_index, &gid); gid_index++)
        if (text ? !memcmp(&gid, &wanted, sizeof(wanted)) : gid.raw[0] != 0 && gid.raw[0] != 0xfe)
            return;
    errno = EADDRNOTAVAIL;
    give_up(text ? text : "no global address");
}

int main(int argc, char **argv)
{
    char line[256], text[INET6_ADDRSTRLEN];
    struct ibv_device **devices;
    int mtu;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 4 && argc != 5) {
        answer("ERR usage: peer OCTETS PATH-MTU ACK-TIMEOUT [ADDRESS]");
        return 2;
    }
    buffer_octets = strtoull(argv[1], NULL, 0);
    ack_timeout = atoi(argv[3]);
    for (path_mtu = IBV_MTU_256, mtu = 256; mtu < atoi(argv[2]); path_mtu++)
        mtu *= 2;

    devices = ibv_get_device_list(NULL);
    if (!devices || !*devices || !(context = ibv_open_device(*devices)))
        give_up("no RDMA device");
    find_address(argv[4]);
    if (posix_memalign((void **)&buffer, 4096, buffer_octets))
        give_up("no memory for the buffer");
    memset(buffer, 0, buffer_octets);
    domain = ibv_alloc_pd(context);
    if (domain)
        region = ibv_reg_mr(domain, buffer, buffer_octets, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    completions = region ? ibv_create_cq(context, 2 * WORK_REQUESTS, NULL, NULL, 0) : NULL;
    if (!completions)
        give_up("no memory region or completion queue");

    inet_ntop(AF_INET6, &gid, text, sizeof(text));
    answer("OK address=%s rkey=0x%08x base=0x%" PRIxPTR, text, region->rkey, (uintptr_t)buffer);
    while (fgets(line, sizeof(line), stdin))
        command(line);
    return 0;
}
