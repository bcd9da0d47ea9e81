/* vault.h - what the tools of backups share: the configuration, keys, and repositories that are
 * open.
 *
 *     struct vault vault;
 *     struct cli_opt opts[VAULT_OPTS];
 *     vault_init(&vault, cli);
 *     size_t n = vault_options(&vault, opts, VAULT_FOR_REPOSITORY);
 *     opts[n++] = (struct cli_opt){.name = …};
 *     ... cli_parse() ...
 *     if (!vault_load(&vault, &err))
 *         ...
 *     for (i = 0; i < vault.n_targets; i++)
 *         if (!vault_open(&vault, &vault.targets[i], VAULT_READ, &open, &err))
 *             ...
 *         vault_close(&open);
 *     vault_done(&vault);
 *
 * The configuration is an INI file: a section for each target, and keys before the first
 * section for all of them. Every key is an option of the command line, which wins.
 */
#ifndef TOOLS_VAULT_VAULT_H
#define TOOLS_VAULT_VAULT_H

#include <pthread.h>
#include <stdatomic.h>

#include "archive/repo.h"
#include "archive/retain.h"
#include "tools/cli/cli.h"

#define VAULT_CONFIG "/etc/redoubt/redoubt.conf"
#define VAULT_SPOOL  "/var/lib/redoubt"

/* Which tools have a key as an option. */
enum {
    VAULT_FOR_REPOSITORY = 1, /* all */
    VAULT_FOR_KEYS = 2,       /* that open sealed objects */
    VAULT_FOR_SOURCE = 4,     /* that read a source */
    VAULT_FOR_WRITING = 8,    /* that write sets */
    VAULT_FOR_KEEP = 16,      /* that change the sets of a target, and remove some */
    VAULT_FOR_STREAM = 32,    /* that archive a stream */
    VAULT_FOR_BACKUP = 64,    /* that take one set at a time */
    VAULT_FOR_READING = 128   /* that judge what is in a repository: --allow-unsealed */
};

/* id, key and option, argument, what it is for, help */
#define VAULT_KEYS(X)                                                                              \
    X(SOURCE, "source", "URL|PATH", VAULT_FOR_SOURCE, "the server, dump.rdb or log to back up")    \
    X(CLUSTER, "cluster", "yes|no", VAULT_FOR_BACKUP, "all masters of the source's cluster; no")   \
    X(SCAN, "scan", "yes|no", VAULT_FOR_BACKUP, "key by key, for servers that refuse PSYNC; no")   \
    X(USER, "user", "NAME", VAULT_FOR_SOURCE, "user name for the server")                          \
    X(PASS_FILE, "pass-file", "FILE", VAULT_FOR_SOURCE, "the server's password")                   \
    X(CACERT, "cacert", "FILE", VAULT_FOR_SOURCE, "trusted certificate authorities")               \
    X(CERT, "cert", "FILE", VAULT_FOR_SOURCE, "client certificate for TLS")                        \
    X(TLS_KEY, "tls-key", "FILE", VAULT_FOR_SOURCE, "client's private key for TLS")                \
    X(REPOSITORY, "repository", "PATH|URL", VAULT_FOR_REPOSITORY,                                  \
      "where sets are stored; repeatable")                                                         \
    X(S3_ENDPOINT, "s3-endpoint", "URL", VAULT_FOR_REPOSITORY,                                     \
      "address of the service; default: AWS")                                                      \
    X(S3_REGION, "s3-region", "NAME", VAULT_FOR_REPOSITORY, "us-east-1")                           \
    X(S3_STYLE, "s3-style", "path|host", VAULT_FOR_REPOSITORY,                                     \
      "bucket in the path or in the host; path")                                                   \
    X(S3_KEY_FILE, "s3-key-file", "FILE", VAULT_FOR_REPOSITORY,                                    \
      "two lines: the id of the access key, and the secret")                                       \
    X(S3_KEY_COMMAND, "s3-key-command", "CMD", VAULT_FOR_REPOSITORY,                               \
      "a command that prints these lines")                                                         \
    X(S3_INSTANCE_KEYS, "s3-instance-keys", "yes|no", VAULT_FOR_REPOSITORY,                        \
      "keys of the role of this instance or container; no")                                        \
    X(S3_SSE, "s3-sse", "KIND", VAULT_FOR_REPOSITORY, "AES256 or aws:kms")                         \
    X(SSH_KEY_FILE, "ssh-key-file", "FILE", VAULT_FOR_REPOSITORY, "client's private key for SFTP") \
    X(SSH_KNOWN_HOSTS, "ssh-known-hosts", "FILE", VAULT_FOR_REPOSITORY,                            \
      "the keys of hosts; ~/.ssh/known_hosts")                                                     \
    X(CA_FILE, "ca-file", "FILE", VAULT_FOR_REPOSITORY, "trusted authorities for the repository")  \
    X(KEY_FILE, "key-file", "FILE", VAULT_FOR_KEYS, "the key that seals sets")                     \
    X(KEY_COMMAND, "key-command", "CMD", VAULT_FOR_KEYS, "a command that prints the key")          \
    X(PASSPHRASE_FILE, "passphrase-file", "FILE", VAULT_FOR_KEYS, "a passphrase instead of a key") \
    X(PASSPHRASE_COMMAND, "passphrase-command", "CMD", VAULT_FOR_KEYS,                             \
      "a command that prints the passphrase")                                                      \
    X(COMPRESS, "compress", "none|lz4|gzip", VAULT_FOR_WRITING, "compression; lz4")                \
    X(COMPRESS_LEVEL, "compress-level", "N", VAULT_FOR_WRITING, "level of the compression")        \
    X(KEEP, "keep", "RULES", VAULT_FOR_KEEP, "which sets prune keeps: \"hourly 48, daily 60\"")    \
    X(LOCK_EXPIRE, "lock-expire", "TIME", VAULT_FOR_KEEP,                                          \
      "a lock without a heartbeat for this time may be taken; 5m")                                 \
    X(PRUNE, "prune", "yes|no", VAULT_FOR_WRITING, "prune after each backup; no")                  \
    X(METRICS_FILE, "metrics-file", "FILE", VAULT_FOR_WRITING, "figures for Prometheus")           \
    X(HOOK_PRE, "hook-pre", "CMD", VAULT_FOR_WRITING, "run before a backup")                       \
    X(HOOK_POST, "hook-post", "CMD", VAULT_FOR_WRITING, "run after a backup")                      \
    X(HOOK_FAILED, "hook-failed", "CMD", VAULT_FOR_WRITING, "run when a backup has failed")        \
    X(HEARTBEAT_URL, "heartbeat-url", "URL", VAULT_FOR_WRITING, "requested after each backup")     \
    X(HEARTBEAT_FAILED_URL, "heartbeat-failed-url", "URL", VAULT_FOR_WRITING,                      \
      "after a failed one; default: the first with /fail")                                         \
    X(LOCK_WAIT, "lock-wait", "TIME", VAULT_FOR_KEEP, "maximum time to wait for another run; 30s") \
    X(SPOOL, "spool", "DIR", VAULT_FOR_SOURCE, "for data not stored yet; " VAULT_SPOOL "/TARGET")  \
    X(SPOOL_SIZE, "spool-size", "SIZE", VAULT_FOR_STREAM, "maximum size of the spool; unlimited")  \
    X(SEGMENT_SIZE, "segment-size", "SIZE", VAULT_FOR_STREAM, "maximum size of a segment; 64mb")   \
    X(ARCHIVE_INTERVAL, "archive-interval", "TIME", VAULT_FOR_STREAM,                              \
      "maximum time until a change is uploaded; 10s")                                              \
    X(BASE_INTERVAL, "base-interval", "TIME", VAULT_FOR_STREAM, "time between two base sets; 24h") \
    X(SENTINEL, "sentinel", "HOST:PORT,…", VAULT_FOR_STREAM, "sentinels to ask for the master")    \
    X(SENTINEL_PASS_FILE, "sentinel-pass-file", "FILE", VAULT_FOR_STREAM,                          \
      "file with their password")                                                                  \
    X(MASTER_NAME, "master-name", "NAME", VAULT_FOR_STREAM, "name of the master; mymaster")        \
    X(ARCHIVE_METRICS_FILE, "archive-metrics-file", "FILE", VAULT_FOR_STREAM,                      \
      "figures of the archive for Prometheus")

enum vault_key {
#define X(id, name, arg, mask, help) VAULT_KEY_##id,
    VAULT_KEYS(X)
#undef X
        VAULT_KEY_COUNT
};

enum { VAULT_OPTS = VAULT_KEY_COUNT + 32, VAULT_STORES = 4, VAULT_PATH_MAX = 4096, VAULT_RING = 8 };

struct vault_conf {
    char *values[VAULT_KEY_COUNT]; /* NULL: not given; of REPOSITORY the first; owned */
    char *more[VAULT_STORES];      /* repositories after the first */
    size_t n_more;
};

struct vault_target {
    char name[ARCHIVE_TEXT_MAX];
    struct vault_conf conf;
    bool allow_unsealed;
};

struct vault_option {
    struct vault *vault;
    enum vault_key key;
};

struct vault {
    struct cli *cli;
    const char *config;      /* --config */
    bool allow_unsealed;     /* --allow-unsealed */
    struct vault_conf flags; /* of the command line */
    struct vault_option options[VAULT_KEY_COUNT];
    struct vault_target *targets; /* those that are meant, with everything that holds for them */
    size_t n_targets;
};

void vault_init(struct vault *vault, struct cli *cli);
void vault_done(struct vault *vault);

/* Fills opts with --config and the keys of these tools; returns how many. The last entry that the
 * caller does not use must be zero. */
size_t vault_options(struct vault *vault, struct cli_opt opts[VAULT_OPTS], unsigned mask);

/* Reads the configuration and takes the targets named by names, or all of them. Without a
 * configuration, or with --repository and none named, there is one target made of the options. */
bool vault_load(struct vault *vault, char **names, size_t n_names, struct rd_err *err);

/* The same, and RD_ERR_USAGE if it is 0. */
bool vault_get_interval(const struct vault_target *target, enum vault_key key, uint64_t *ret_ms,
                        struct rd_err *err);
/* A number of bytes such as 64mb, and not 0. */
bool vault_get_size(const struct vault_target *target, enum vault_key key, uint64_t *ret,
                    struct rd_err *err);
/* The time after which a lock expires. RD_ERR_USAGE unless it is from 1 second to a day. */
bool vault_get_expiry(const struct vault_target *target, uint64_t *ret_ms, struct rd_err *err);
/* The name of a key. */
const char *vault_key_name(enum vault_key key);
/* The value of a key, or NULL. */
const char *vault_get(const struct vault_target *target, enum vault_key key);
/* RD_ERR_USAGE where it is neither yes nor no. */
bool vault_get_bool(const struct vault_target *target, enum vault_key key, bool *ret,
                    struct rd_err *err);
/* Leaves *ret_ms as it is if the target has no value. RD_ERR_USAGE if it is not a time. */
bool vault_get_time(const struct vault_target *target, enum vault_key key, uint64_t *ret_ms,
                    struct rd_err *err);

/* ---- keys ---- */

struct vault_keys {
    struct rd_seal_key keys[VAULT_RING]; /* the first one seals */
    size_t n_keys;
    struct rd_buf passphrase;
    struct rd_seal_ring ring; /* of the above */
};

/* What the target says about keys; none at all is fine. The ring requires that everything is sealed
 * if there is a key, unless --allow-unsealed is given. */
bool vault_keys_open(struct vault_keys *ret, const struct vault_target *target, struct rd_err *err);
/* For tools that need no key: only a key file, if it can be read. It runs no command. */
void vault_keys_look(struct vault_keys *ret, const struct vault_target *target);
void vault_keys_done(struct vault_keys *keys);
/* Whether the target has a key or a passphrase. */
bool vault_keys_given(const struct vault_keys *keys);

/* The key to seal with: the first one, or one made of the passphrase with a new salt, which is kept
 * for the rest of the run. NULL in *ret: nothing is sealed. */
bool vault_keys_seal(struct vault_keys *keys, const struct rd_seal_key **ret, struct rd_err *err);

/* Reads keys from text: 32 bytes, or lines of 64 hexadecimal digits or 44 characters of base64. */
bool vault_keys_parse(struct vault_keys *keys, struct rd_slice text, struct rd_err *err);

/* ---- an open target ---- */

/* hold.c: a lock with the thread that renews it. The thread has a store of its own, because the
 * other one may be busy for minutes. */
struct vault_hold {
    struct archive_lock lock;
    const struct vault_target *target;
    const char *where;
    bool inited, running;
    bool refused; /* vault_lock() gave up, because another run has it */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_bool stop;
};

/* `tool` is named in the lock. */
bool vault_hold_init(struct vault_hold *hold, const struct vault_target *target, const char *where,
                     enum archive_lock_kind kind, const char *tool, struct rd_err *err);
/* One attempt; see archive_lock_try(). Then the lock is renewed until the drop. */
bool vault_hold_try(struct vault_hold *hold, struct archive_store *store, struct rd_err *err);
void vault_hold_drop(struct vault_hold *hold, struct archive_store *store);
void vault_hold_done(struct vault_hold *hold);

enum vault_mode {
    VAULT_LIST,  /* keys are not needed: who watches backups need not be able to read them */
    VAULT_JUDGE, /* with keys if there are any and they can be read */
    VAULT_READ,
    VAULT_WRITE
};

struct vault_open {
    const struct vault_target *target;
    struct archive_store *stores[VAULT_STORES];
    struct archive_repo repos[VAULT_STORES];
    struct rd_err errs[VAULT_STORES]; /* set: this one failed, and is left out */
    struct vault_hold holds[VAULT_STORES];
    size_t n;
    struct vault_keys keys;
    struct rd_err keys_err; /* of VAULT_JUDGE: why keys were not read */
};

/* Opens keys (with VAULT_LIST only a key file that can be read) and all repositories, which use
 * these keys to verify signatures: *ret must not be moved. A repository that cannot be opened has
 * its error in errs and no store; with VAULT_WRITE that is a failure unless another can be opened.
 */
bool vault_open(const struct vault_target *target, enum vault_mode mode, struct vault_open *ret,
                struct rd_err *err);
void vault_close(struct vault_open *open);

/* True if repository i was opened; otherwise adopts its error. */
bool vault_is_open(const struct vault_open *open, size_t i, struct rd_err *err);

/* Locks repository i for this tool. If another process has the lock, waits for it as long as the
 * target says, or until *cancel, which may be NULL. It waits longer for a lock whose holder may
 * have ended: until that one renews it, or it expires. */
bool vault_lock(struct cli *cli, struct vault_open *open, size_t i, const atomic_bool *cancel,
                struct rd_err *err);

/* Gives the repositories whose locks were lost their errors. */
void vault_find_lost(struct vault_open *open);
/* If a lock was lost, that is the reason of a failure: another run may have removed objects. */
void vault_explain_lost(struct vault_open *open, struct rd_err *err);

/* ---- each.c: all repositories of all targets; one that fails does not keep others from their
 * turn ---- */

struct vault_each {
    struct cli *cli;
    const struct vault *vault;
    enum vault_mode mode;
    struct rd_err *errs; /* VAULT_STORES of each target: of the repositories that failed */
    int status;          /* CLI_OK, or the exit status of the first of them */
};

typedef bool vault_each_fn(void *ctx, struct vault_open *open, size_t i, struct rd_err *err);

/* vault must be loaded. vault_each_done() is needed in any case. */
bool vault_each_init(struct vault_each *ret, struct cli *cli, const struct vault *vault,
                     enum vault_mode mode, struct rd_err *err);

/* Calls work for each repository that has not failed yet, and reports those that fail. */
void vault_each(struct vault_each *each, vault_each_fn *work, void *ctx);

/* Puts "errors" into the open object. */
void vault_each_put_errors(const struct vault_each *each, struct cli_json *json);
void vault_each_done(struct vault_each *each);

/* The i-th repository of a target as the configuration calls it; NULL: there are fewer. */
const char *vault_repository(const struct vault_target *target, size_t i);

/* archive_repo_list(), with a note about sets that were removed meanwhile. */
bool vault_list(struct cli *cli, struct archive_repo *repo, struct archive_sets *ret,
                struct rd_err *err);

/* ---- places.c: a repository by what the configuration calls it ---- */

bool vault_open_store(struct archive_store **ret, const struct vault_target *target,
                      const char *where, enum vault_mode mode, struct rd_err *err);

/* ---- the rest ---- */

/* The folder for what is not in a repository yet: created where only its last component is missing.
 */
bool vault_spool(const struct vault_target *target, char ret[VAULT_PATH_MAX], struct rd_err *err);

void vault_wait_ms(uint64_t ms);
bool vault_random(void *ret, size_t size, struct rd_err *err);
void vault_host(char ret[ARCHIVE_TEXT_MAX]);

/* Runs a command with /bin/sh. ret: what it prints, at most max bytes; NULL: to stderr. env is
 * pairs of names and values up to NULL, or NULL. Fails where its status is not 0. The error has the
 * name as its origin, because the command may contain a secret. */
bool vault_run(const char *name, const char *command, const char *const *env, size_t max,
               struct rd_buf *ret, struct rd_err *err);

/* A whole small file, appended to *ret; RD_ERR_LIMIT beyond max bytes. */
bool vault_read_file(const char *path, size_t max, struct rd_buf *ret, struct rd_err *err);

#endif
