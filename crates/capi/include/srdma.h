/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * srdma: an application publishes versions of its buffers to the receivers of a multicast group, and each receiver takes
 * every version whole, in order and verified.
 *
 * Functions return 0 or a negative errno; srdma_last_message() is the sentence of the thread's last error. Handles are
 * opaque, and may be used by several threads at once, but no thread may use one that another closes. In a child of fork()
 * they fail by -ECHILD. Structures of options and events begin with their size, so that later versions can add members.
 */
#ifndef SRDMA_H
#define SRDMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A device: a provider of queue pairs, and a controller. */
struct srdma;
/* The source of a group, or a receiver. */
struct srdma_group;
/* A version that a receiver has taken. */
struct srdma_version;

/* Members that are NULL have their defaults. */
struct srdma_options {
    size_t size;              /* sizeof(struct srdma_options) */
    const char *provider;     /* "udp", "verbs" or "verbs:DEVICE" [default: $SRDMA_PROVIDER, or "udp"] */
    const char *controller;   /* URL, or several separated by commas [default: $SRDMA_CONTROLLER, or port 8470 here] */
    const char *token_file;   /* bearer token [default: $SRDMA_TOKEN_FILE] */
    const char *ca_file;      /* CA bundle, PEM [default: $SRDMA_CA, or the system's] */
    const char *address;      /* of this host in groups [default: the one that the kernel chooses] */
};

enum srdma_digest {
    SRDMA_DIGEST_SHA256 = 1,
    SRDMA_DIGEST_CRC32 = 2
};

enum srdma_on_failure {
    SRDMA_ON_FAILURE_STRICT = 1, /* all wait for a receiver that stalls */
    SRDMA_ON_FAILURE_EVICT = 2   /* a receiver that stalls for stall_ms is evicted */
};

/* Members that are 0 or NULL, but slot_octets, have their defaults. */
struct srdma_group_options {
    size_t size;              /* sizeof(struct srdma_group_options) */
    const char *name;         /* display name */
    const char *proxy;        /* Proxy Address [default: one of the tenant's pool] */
    uint64_t slot_octets;     /* octets of a slot: of a version, each buffer rounded up to 64 octets */
    uint32_t slots;           /* versions that a receiver can have at once [default: 2] */
    uint32_t path_mtu;        /* 256, 512, 1024, 2048 or 4096 octets [default: 4096] */
    uint32_t digest;          /* enum srdma_digest [default: SHA-256] */
    uint32_t on_failure;      /* enum srdma_on_failure [default: evict] */
    uint32_t stall_ms;        /* [default: 10000] */
    uint32_t min_receivers;   /* that an eviction may leave [default: 1] */
    uint32_t slow_after_ms;   /* SRDMA_EVENT_SLOW after this time [default: 1000] */
    uint32_t window_octets;   /* in flight [default: that of the controller] */
    uint32_t not_ready_ms;    /* a receiver without a free slot, in place of stall_ms [default: stall_ms] */
    uint32_t flags;           /* of enum srdma_group_flags */
    const uint64_t *more_slot_octets; /* octets of a slot in each further region [default: one region] */
    uint32_t more_regions;    /* their number, at most 15 */
    uint32_t reserved;        /* 0 */
};

enum srdma_group_flags {
    /* Receivers that join late fetch the version that was published last, by TCP from this host. Its buffers are the
     * application's again when the next version is published or has failed, or srdma_group_close() returns. */
    SRDMA_KEEP_CURRENT = 1
};

/* Memory of a receiver for one region of a group. */
struct srdma_region {
    void *base;
    size_t length;
};

/* Members that are 0 or NULL have their defaults. */
struct srdma_join_options {
    size_t size;              /* sizeof(struct srdma_join_options) */
    void *base;               /* memory for the slots of the group [default: memory of the library] */
    size_t length;            /* its octets */
    const char *runtime_directory; /* where ranks find each other, of mode 0700 [default: srdma in $XDG_RUNTIME_DIR] */
    uint32_t flags;           /* of enum srdma_join_flags */
    uint32_t reserved;        /* 0 */
};

enum srdma_join_flags {
    /* All processes of this host that join the group with this flag, as the same user, share one receiver and its
     * memory, which none but the owner can write. `base` is to be NULL. */
    SRDMA_JOIN_SHARED = 1
};

/* A named buffer. Names are UTF-8 of 1 to 1024 octets, unique in a version. */
struct srdma_buffer {
    const char *name;
    const void *base;
    size_t length;
};

enum srdma_event_kind {
    SRDMA_EVENT_PUBLISHED = 1, /* source: all members have the version; its buffers are the application's again */
    SRDMA_EVENT_SLOW = 2,      /* source: not every receiver has a free slot for the version */
    SRDMA_EVENT_FAILED = 3,    /* source: it is not published; its buffers are the application's again */
    SRDMA_EVENT_JOINED = 4,    /* receiver: the group has it */
    SRDMA_EVENT_VERSION = 5,   /* receiver: the version is whole, and can be taken */
    SRDMA_EVENT_REJECTED = 6,  /* receiver: the version will never be visible */
    SRDMA_EVENT_OVER = 7,      /* nothing more happens */
    SRDMA_EVENT_LOST = 8,      /* the application was late: `version` events were dropped */
    SRDMA_EVENT_SOURCE_SILENT = 9, /* receiver: the controller does not hear of the source any more */
    SRDMA_EVENT_RANK_ATTACHED = 10, /* owner: another process of the host is attached; `version` is its number */
    SRDMA_EVENT_RANK_DETACHED = 11, /* owner: it no longer is; `version` is its number */
    SRDMA_EVENT_RANK_HOLDS = 12, /* owner: a process has a version for long, in the slot that the next one needs */
    SRDMA_EVENT_OWNER_LOST = 13 /* rank: the owner has ended; one of the ranks joins the group anew */
};

struct srdma_event {
    size_t size;              /* sizeof(struct srdma_event) */
    uint32_t kind;            /* enum srdma_event_kind; ignore kinds that you do not know */
    int32_t error;            /* 0, or a negative errno */
    uint64_t version;         /* 0 if it is not known */
    char message[128];        /* a sentence, cut if it is longer; "" without an error */
};

/* Numbers since a group was created or joined, as its thread has seen them last: at most a second ago. Those of packets are
 * 0 with an RDMA device, which counts for its port alone ("rdma statistic"). */
struct srdma_statistics {
    size_t size;              /* sizeof(struct srdma_statistics) */
    uint64_t versions;        /* source: published; receiver: whole */
    uint64_t octets;          /* of their buffers */
    uint64_t failed;          /* source: versions that have failed; receiver: that were rejected */
    uint64_t waiting;         /* source: versions that wait or are being sent; receiver: that are being verified */
    uint64_t slow;            /* source: SRDMA_EVENT_SLOW */
    uint64_t strays;          /* receiver: writes outside of open slots, without effect */
    uint64_t packets_sent;    /* requests, those that were sent again included */
    uint64_t packets_retransmitted;
    uint64_t packets_acknowledged;
    uint64_t timeouts;        /* no response for the ACK timeout */
    uint64_t naks;            /* received by a source, sent by a receiver */
    uint64_t rnr_naks;        /* the same, receiver not ready */
    uint64_t cnps;            /* the same, Fast CNPs included */
    uint64_t octets_received; /* payload, in sequence */
    uint64_t duplicates;      /* packets that had been received before */
};

enum srdma_log_level {
    SRDMA_LOG_ERROR = 1,   /* queue pairs, sockets and devices that have failed */
    SRDMA_LOG_WARNING = 2, /* what needs attention: slow receivers, rejected versions, evictions, no controller */
    SRDMA_LOG_INFO = 3,    /* groups: created, committed, joined, ended */
    SRDMA_LOG_DEBUG = 4    /* each version */
};

/* Takes a line of the log, without a newline, valid for the call. It is called by threads of the library and by those
 * that call it, one line at a time or several at once, and must not call the library. */
typedef void (*srdma_log_function)(void *context, int level, const char *message);

/* Version of the library: major << 16 | minor << 8 | patch. */
uint32_t srdma_library_version(void);
/* The sentence of an error in general; valid for ever. */
const char *srdma_strerror(int error);
/* The sentence of the last error of this thread; valid until its next call. */
const char *srdma_last_message(void);

/* Passes lines of this level and the more urgent ones to a function, for the whole process; NULL: to none, as at first.
 * When it returns, the former function is not called any more. Lines have no tokens, keys and rkeys. -EINVAL, -EBUSY
 * (a program in Rust that has a log of its own). */
int srdma_set_log(int level, srdma_log_function function, void *context);

/* Opens a device: checks the options; the controller is not asked. `options` may be NULL.
 * -EINVAL, -ENODEV (provider, device), -EADDRNOTAVAIL (the device does not have the address), -EACCES (token,
 * certificate, permission for the device). */
int srdma_open(const struct srdma_options *options, struct srdma **device);
/* Closes a device. Its groups stay. */
void srdma_close(struct srdma *device);

/* Creates a group whose source this is. -ECONNREFUSED (no controller), -EPERM (it refuses), -EADDRNOTAVAIL,
 * -EADDRINUSE. */
int srdma_group_create(struct srdma *device, const struct srdma_group_options *options, struct srdma_group **group);
/* Joins a group. `base` is the memory for its slots, which the library writes until the group is closed and all versions
 * are released; NULL: memory of the library. -ENOENT (no such group), -ENOSPC (memory too small), -ENOMEM. */
int srdma_group_join(struct srdma *device, uint32_t number, void *base, size_t length, struct srdma_group **group);
/* Joins a group of several regions. `regions` has memory for each of them, in the order of the group's, as `base` of
 * srdma_group_join(); none: memory of the library. -EINVAL (another number than the group has), -ENOENT (no such group),
 * -ENOSPC (memory too small), -ENOMEM. */
int srdma_group_join_regions(struct srdma *device, uint32_t number, const struct srdma_region *regions, size_t count,
                             struct srdma_group **group);
/* Joins a group, with options. -ENOENT (no such group), -ENOSPC (memory too small), -ENOMEM, -EACCES (the directory of
 * ranks), -ETIMEDOUT (the owner of the host's receiver has not joined in time), -ECONNRESET (too many ranks). */
int srdma_group_join_with(struct srdma *device, uint32_t number, const struct srdma_join_options *options, struct srdma_group **group);
/* The group's number at the controller. */
int srdma_group_number(struct srdma_group *group, uint32_t *number);
/* Source: waits for so many receivers, and commits the group. A timeout below 0 is none. -ETIMEDOUT. */
int srdma_group_commit(struct srdma_group *group, uint32_t receivers, int timeout_ms);
/* Numbers of the group. Set `size` before. */
int srdma_group_statistics(struct srdma_group *group, struct srdma_statistics *statistics);
/* Leaves the group, or ends the source and the group. `group` is invalid afterwards, whatever is returned. Versions that
 * were taken stay. */
int srdma_group_close(struct srdma_group *group);

/* Source: publishes a version, whose number is greater than those before. Returns at once; the buffers must not change
 * until SRDMA_EVENT_PUBLISHED or SRDMA_EVENT_FAILED, until srdma_wait() has returned 0, or srdma_group_close() anything.
 * -EALREADY (not greater), -ENOSPC (slot too small), -EAGAIN (too many wait), -ESHUTDOWN. */
int srdma_publish(struct srdma_group *group, uint64_t version, const struct srdma_buffer *buffers, size_t count);
/* Source: publishes a version in several regions. `regions` has the region of each buffer, counted from 0; NULL: all are in
 * the first. The rest is as of srdma_publish(). -EINVAL (no such region), -EALREADY (not greater), -ENOSPC (slot too
 * small), -EAGAIN (too many wait), -ESHUTDOWN. */
int srdma_publish_regions(struct srdma_group *group, uint64_t version, const struct srdma_buffer *buffers,
                          const uint32_t *regions, size_t count);
/* Source: waits until the version is published. -ETIMEDOUT, -ENOENT (no such version), -ESHUTDOWN. */
int srdma_wait(struct srdma_group *group, uint64_t version, int timeout_ms);

/* Receiver: takes the oldest whole version, when there is one. -ETIMEDOUT, -ECONNRESET (evicted), -ESHUTDOWN. */
int srdma_take(struct srdma_group *group, int timeout_ms, struct srdma_version **version);
/* The number of a version. */
uint64_t srdma_version_number(const struct srdma_version *version);
/* The number of its buffers. */
size_t srdma_version_buffers(const struct srdma_version *version);
/* The buffer at this place; name and octets are valid until the version is released. -ENOENT. */
int srdma_version_buffer(const struct srdma_version *version, size_t index, struct srdma_buffer *buffer);
/* The buffer of this name. -ENOENT. */
int srdma_version_find(const struct srdma_version *version, const char *name, struct srdma_buffer *buffer);
/* Releases a version: its slot is free for a later one. */
void srdma_release(struct srdma_version *version);

/* A descriptor that is readable while there are events, until the group is closed; do not read it. Negative: an error. */
int srdma_fd(struct srdma_group *group);
/* The oldest event. Set `size` before. -EAGAIN: none. */
int srdma_next_event(struct srdma_group *group, struct srdma_event *event);

#ifdef __cplusplus
}
#endif

#endif
