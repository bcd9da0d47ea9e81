/* config.h - the configuration of backups: targets and their settings.
 *
 *     struct backup_config config = {.path = NULL};
 *     if (!backup_config_load(&config, watch, names, n_names, &err))
 *         ...
 *     for (size_t i = 0; i < config.n_targets; i++)
 *         ... backup_get(&config.targets[i], BACKUP_KEY_SOURCE) ...
 *     backup_config_done(&config);
 *
 * The configuration is an INI file: a section for each target, and keys before the first section
 * for all of them. Settings that the caller adds first, such as those of a command line, take the
 * place of those of the file. A section [repository NAME] has settings of one repository, which
 * targets name by NAME.
 */
#ifndef BACKUP_CONFIG_H
#define BACKUP_CONFIG_H

#include "archive/manifest.h"
#include "base/watch.h"

#define BACKUP_CONFIG "/etc/redoubt/redoubt.conf"
#define BACKUP_SPOOL  "/var/lib/redoubt"

/* Which tools have a key as an option. */
enum {
    BACKUP_FOR_REPOSITORY = 1, /* all */
    BACKUP_FOR_KEYS = 2,       /* that open sealed objects */
    BACKUP_FOR_SOURCE = 4,     /* that read a source */
    BACKUP_FOR_WRITING = 8,    /* that write sets */
    BACKUP_FOR_KEEP = 16,      /* that change the sets of a target, and remove some */
    BACKUP_FOR_STREAM = 32,    /* that archive a stream */
    BACKUP_FOR_BACKUP = 64,    /* that take one set at a time */
    BACKUP_FOR_READING = 128,  /* that judge what is in a repository: --allow-unsealed */
    BACKUP_FOR_MERGING = 256   /* that make larger segments of small ones */
};

/* id, key and option, argument, what it is for, help */
#define BACKUP_KEYS(X)                                                                             \
    X(SOURCE, "source", "URL|PATH", BACKUP_FOR_SOURCE, "the server, dump.rdb or log to back up")   \
    X(CLUSTER, "cluster", "yes|no", BACKUP_FOR_BACKUP, "all masters of the source's cluster; no")  \
    X(SCAN, "scan", "yes|no", BACKUP_FOR_BACKUP, "key by key, for servers that refuse PSYNC; no")  \
    X(USER, "user", "NAME", BACKUP_FOR_SOURCE, "user name for the server")                         \
    X(PASS_FILE, "pass-file", "FILE", BACKUP_FOR_SOURCE, "the server's password")                  \
    X(CACERT, "cacert", "FILE", BACKUP_FOR_SOURCE, "trusted certificate authorities")              \
    X(CERT, "cert", "FILE", BACKUP_FOR_SOURCE, "client certificate for TLS")                       \
    X(TLS_KEY, "tls-key", "FILE", BACKUP_FOR_SOURCE, "client's private key for TLS")               \
    X(REPOSITORY, "repository", "PATH|URL", BACKUP_FOR_REPOSITORY,                                 \
      "where sets are stored; repeatable")                                                         \
    X(S3_ENDPOINT, "s3-endpoint", "URL", BACKUP_FOR_REPOSITORY,                                    \
      "address of the service; default: AWS")                                                      \
    X(S3_SSE, "s3-sse", "KIND", BACKUP_FOR_REPOSITORY, "AES256 or aws:kms")                        \
    X(S3_STORAGE_CLASS, "s3-storage-class", "CLASS", BACKUP_FOR_REPOSITORY,                        \
      "of new objects, such as STANDARD_IA")                                                       \
    X(S3_TAGS, "s3-tags", "KEY=VALUE,…", BACKUP_FOR_REPOSITORY, "tags of new objects")             \
    X(S3_OBJECT_LOCK, "s3-object-lock", "MODE TIME", BACKUP_FOR_REPOSITORY,                        \
      "retention of new objects: governance or compliance, and how long: 30d")                     \
    X(S3_REGION, "s3-region", "NAME", BACKUP_FOR_REPOSITORY, "us-east-1")                          \
    X(S3_STYLE, "s3-style", "path|host", BACKUP_FOR_REPOSITORY,                                    \
      "bucket in the path or in the host; path")                                                   \
    X(S3_KEY_FILE, "s3-key-file", "FILE", BACKUP_FOR_REPOSITORY,                                   \
      "two lines: the id of the access key, and the secret")                                       \
    X(S3_KEY_COMMAND, "s3-key-command", "CMD", BACKUP_FOR_REPOSITORY,                              \
      "a command that prints these lines")                                                         \
    X(S3_INSTANCE_KEYS, "s3-instance-keys", "yes|no", BACKUP_FOR_REPOSITORY,                       \
      "keys of the role of this instance or container; no")                                        \
    X(SSH_KEY_FILE, "ssh-key-file", "FILE", BACKUP_FOR_REPOSITORY,                                 \
      "client's private key for SFTP")                                                             \
    X(SSH_KNOWN_HOSTS, "ssh-known-hosts", "FILE", BACKUP_FOR_REPOSITORY,                           \
      "the keys of hosts; ~/.ssh/known_hosts")                                                     \
    X(WEBDAV_USER, "webdav-user", "NAME", BACKUP_FOR_REPOSITORY, "user name for WebDAV")           \
    X(WEBDAV_PASS_FILE, "webdav-pass-file", "FILE", BACKUP_FOR_REPOSITORY,                         \
      "the password for WebDAV")                                                                   \
    X(AZURE_ENDPOINT, "azure-endpoint", "URL", BACKUP_FOR_REPOSITORY,                              \
      "address of the service; default: Azure")                                                    \
    X(AZURE_KEY_FILE, "azure-key-file", "FILE", BACKUP_FOR_REPOSITORY,                             \
      "the key of the storage account")                                                            \
    X(AZURE_SAS_FILE, "azure-sas-file", "FILE", BACKUP_FOR_REPOSITORY,                             \
      "a shared access signature instead of the key")                                              \
    X(CA_FILE, "ca-file", "FILE", BACKUP_FOR_REPOSITORY, "trusted authorities for the repository") \
    X(LIMIT_RATE, "limit-rate", "SIZE", BACKUP_FOR_REPOSITORY,                                     \
      "bytes a second to and from a remote repository; unlimited")                                 \
    X(PARALLEL, "parallel", "N", BACKUP_FOR_READING,                                               \
      "connections that read a remote repository; 16")                                             \
    X(KEY_FILE, "key-file", "FILE", BACKUP_FOR_KEYS, "the key that seals sets")                    \
    X(KEY_COMMAND, "key-command", "CMD", BACKUP_FOR_KEYS, "a command that prints the key")         \
    X(PASSPHRASE_FILE, "passphrase-file", "FILE", BACKUP_FOR_KEYS,                                 \
      "a passphrase instead of a key")                                                             \
    X(PASSPHRASE_COMMAND, "passphrase-command", "CMD", BACKUP_FOR_KEYS,                            \
      "a command that prints the passphrase")                                                      \
    X(STORE, "store", "file|chunks", BACKUP_FOR_BACKUP,                                            \
      "sets as files, or as chunks that they share; file")                                         \
    X(CHUNK_GRACE, "chunk-grace", "TIME", BACKUP_FOR_BACKUP,                                       \
      "how long chunks stay that no set needs; 24h")                                               \
    X(COMPRESS, "compress", "none|lz4|gzip|zstd", BACKUP_FOR_WRITING, "compression; lz4")          \
    X(COMPRESS_LEVEL, "compress-level", "N", BACKUP_FOR_WRITING, "level of the compression")       \
    X(KEEP, "keep", "RULES", BACKUP_FOR_KEEP, "which sets prune keeps: \"hourly 48, daily 60\"")   \
    X(KEEP_STREAM, "keep-stream", "TIME|SIZE", BACKUP_FOR_KEEP,                                    \
      "how much of the stream prune keeps: \"7d\", \"10gb\" or both; all that sets need")          \
    X(LOCK_EXPIRE, "lock-expire", "TIME", BACKUP_FOR_KEEP,                                         \
      "a lock without a heartbeat for this time may be taken; 5m")                                 \
    X(PRUNE, "prune", "yes|no", BACKUP_FOR_WRITING, "prune after each backup; no")                 \
    X(METRICS_FILE, "metrics-file", "FILE", BACKUP_FOR_WRITING, "figures for Prometheus")          \
    X(HOOK_PRE, "hook-pre", "CMD", BACKUP_FOR_WRITING, "run before a backup")                      \
    X(HOOK_POST, "hook-post", "CMD", BACKUP_FOR_WRITING, "run after a backup")                     \
    X(HOOK_FAILED, "hook-failed", "CMD", BACKUP_FOR_WRITING, "run when a backup has failed")       \
    X(HEARTBEAT_URL, "heartbeat-url", "URL", BACKUP_FOR_WRITING, "requested after each backup")    \
    X(HEARTBEAT_FAILED_URL, "heartbeat-failed-url", "URL", BACKUP_FOR_WRITING,                     \
      "after a failed one; default: the first with /fail")                                         \
    X(LOCK_WAIT, "lock-wait", "TIME", BACKUP_FOR_KEEP,                                             \
      "maximum time to wait for another run; 30s")                                                 \
    X(SPOOL, "spool", "DIR", BACKUP_FOR_SOURCE,                                                    \
      "for data not stored yet; " BACKUP_SPOOL "/TARGET")                                          \
    X(SPOOL_SIZE, "spool-size", "SIZE", BACKUP_FOR_STREAM, "maximum size of the spool; unlimited") \
    X(SEGMENT_SIZE, "segment-size", "SIZE", BACKUP_FOR_STREAM, "maximum size of a segment; 64mb")  \
    X(ARCHIVE_INTERVAL, "archive-interval", "TIME", BACKUP_FOR_STREAM,                             \
      "maximum time until a change is uploaded; 10s")                                              \
    X(BASE_INTERVAL, "base-interval", "TIME", BACKUP_FOR_STREAM,                                   \
      "time between two base sets; 24h")                                                           \
    X(RESTORE_TIME, "restore-time", "TIME", BACKUP_FOR_STREAM,                                     \
      "a base set is taken when replaying the stream would take longer; off")                      \
    X(KEY_INDEX, "key-index", "yes|no", BACKUP_FOR_STREAM,                                         \
      "an index of keys for each segment; yes")                                                    \
    X(MERGE, "merge", "yes|no", BACKUP_FOR_MERGING, "make larger segments of small ones; yes")     \
    X(MERGE_GRACE, "merge-grace", "TIME", BACKUP_FOR_MERGING, "how long the small ones stay; 6h")  \
    X(SENTINEL, "sentinel", "HOST:PORT,…", BACKUP_FOR_STREAM, "sentinels to ask for the master")   \
    X(SENTINEL_PASS_FILE, "sentinel-pass-file", "FILE", BACKUP_FOR_STREAM,                         \
      "file with their password")                                                                  \
    X(MASTER_NAME, "master-name", "NAME", BACKUP_FOR_STREAM, "name of the master; mymaster")       \
    X(ARCHIVE_METRICS_FILE, "archive-metrics-file", "FILE", BACKUP_FOR_STREAM,                     \
      "figures of the archive for Prometheus")                                                     \
    X(METRICS_LISTEN, "metrics-listen", "[IP:]PORT", BACKUP_FOR_STREAM,                            \
      "serve them to Prometheus at /metrics of this address")

enum backup_key {
#define X(id, name, arg, mask, help) BACKUP_KEY_##id,
    BACKUP_KEYS(X)
#undef X
        BACKUP_KEY_COUNT
};

/* A key as an option of a command line: `mask` has the tools that have it. */
struct backup_key_row {
    const char *name, *arg, *help;
    unsigned mask;
};

const struct backup_key_row *backup_key_row(enum backup_key key);

enum { BACKUP_STORES = 4, BACKUP_PATH_MAX = 4096 };

struct backup_conf {
    char *values[BACKUP_KEY_COUNT]; /* NULL: not given; of REPOSITORY the first; owned */
    char *more[BACKUP_STORES];      /* repositories after the first */
    size_t n_more;
};

struct backup_target {
    char name[ARCHIVE_TEXT_MAX];
    struct backup_conf conf;
    /* Settings of repositories that have a section of their own, in the order of the repositories;
     * NULL: the repository has none. Owned. */
    struct backup_conf *places[BACKUP_STORES];
    bool allow_unsealed;
};

struct backup_config {
    const char *path;              /* NULL: BACKUP_CONFIG, which may be missing */
    bool allow_unsealed;           /* of all targets */
    struct backup_conf flags;      /* these take the place of what the file says */
    struct backup_target *targets; /* those that are meant, with everything that holds for them */
    size_t n_targets;
    struct backup_target *places; /* sections of repositories */
    size_t n_places;
};

/* Adds a setting to config->flags. RD_ERR_USAGE: it is empty, or was given before. */
bool backup_config_set(struct backup_config *config, enum backup_key key, const char *value,
                       struct rd_err *err);

/* Reads the configuration and takes the targets named by names, or all of them. Without a
 * configuration, or with a repository among the flags and none named, there is one target made of
 * the flags. */
bool backup_config_load(struct backup_config *config, const struct rd_watch *watch, char **names,
                        size_t n_names, struct rd_err *err);
void backup_config_done(struct backup_config *config);

/* The same, and RD_ERR_USAGE if it is 0. */
bool backup_get_interval(const struct backup_target *target, enum backup_key key, uint64_t *ret_ms,
                         struct rd_err *err);
/* A number of bytes such as 64mb, and not 0. */
bool backup_get_size(const struct backup_target *target, enum backup_key key, uint64_t *ret,
                     struct rd_err *err);
/* The time after which a lock expires. RD_ERR_USAGE unless it is from 1 second to a day. */
bool backup_get_expiry(const struct backup_target *target, uint64_t *ret_ms, struct rd_err *err);
/* How many connections read a remote repository. RD_ERR_USAGE unless it is from 1 to 64. */
bool backup_get_parallel(const struct backup_target *target, unsigned *ret, struct rd_err *err);
/* The name of a key. */
const char *backup_key_name(enum backup_key key);
/* The value of a key, or NULL. */
const char *backup_get(const struct backup_target *target, enum backup_key key);
/* RD_ERR_USAGE where it is neither yes nor no. */
bool backup_get_bool(const struct backup_target *target, enum backup_key key, bool *ret,
                     struct rd_err *err);
/* Leaves *ret_ms as it is if the target has no value. RD_ERR_USAGE if it is not a time. */
bool backup_get_time(const struct backup_target *target, enum backup_key key, uint64_t *ret_ms,
                     struct rd_err *err);

/* Where the i-th repository of a target is, a path or URL; NULL: there are fewer. */
const char *backup_repository(const struct backup_target *target, size_t i);

/* False: a URL with text before the host that looks like a password, or with parameters, which is
 * not printed. */
bool backup_may_be_shown(const char *where);

/* The target with the settings of one of its repositories, which backup_repository() has returned.
 * Keys and passwords of stores are those of the section, never those of the target: they would go
 * to another store. *ret shares all strings with `target`, and is not to be released. */
void backup_target_at(const struct backup_target *target, const char *where,
                      struct backup_target *ret);

#endif
