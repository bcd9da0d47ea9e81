/* settings.h - redis.conf: every directive of Redis 7.0, its value, and how it is read and changed.
 *
 *     settings_init(&settings);                            // the defaults
 *     if (!settings_load(&settings, argc, argv, &readers, &file, &why)) // file, command line
 *         ... why is "*** FATAL CONFIG FILE ERROR …" ...
 *     loop->settings.maxclients
 *
 * A directive `some-name` is the field some_name: bool, int64_t, uint64_t (bytes), char * (never
 * NULL) or an enum declared here. The table is server/settings/table.h.
 */
#ifndef SERVER_SETTINGS_SETTINGS_H
#define SERVER_SETTINGS_SETTINGS_H

#include "aof/pace.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "engine/config.h"
#include "server/settings/names.h"
#include "server/settings/table.h"

#define SERVER_REDIS_VERSION "7.0.15" /* the compatible version: INFO, HELLO, AUX fields */

enum settings_loglevel {
    SETTINGS_LOG_DEBUG,
    SETTINGS_LOG_VERBOSE,
    SETTINGS_LOG_NOTICE,
    SETTINGS_LOG_WARNING,
    SETTINGS_LOG_NOTHING
};

/* maxmemory-policy is an enum engine_policy, appendfsync an enum aof_fsync. */
enum settings_allow { SETTINGS_ALLOW_NO, SETTINGS_ALLOW_YES, SETTINGS_ALLOW_LOCAL };
enum settings_endpoint {
    SETTINGS_ENDPOINT_IP,
    SETTINGS_ENDPOINT_HOSTNAME,
    SETTINGS_ENDPOINT_UNKNOWN
};
enum settings_tls_auth { SETTINGS_TLS_AUTH_NO, SETTINGS_TLS_AUTH_YES, SETTINGS_TLS_AUTH_OPTIONAL };
enum settings_supervised {
    SETTINGS_SUPERVISED_NO,
    SETTINGS_SUPERVISED_SYSTEMD,
    SETTINGS_SUPERVISED_UPSTART,
    SETTINGS_SUPERVISED_AUTO
};
enum settings_sanitize { SETTINGS_SANITIZE_NO, SETTINGS_SANITIZE_YES, SETTINGS_SANITIZE_CLIENTS };

enum settings_diskless_load {
    SETTINGS_DISKLESS_LOAD_NEVER,
    SETTINGS_DISKLESS_LOAD_EMPTY,
    SETTINGS_DISKLESS_LOAD_SWAPDB
};
enum settings_propagation {
    SETTINGS_PROPAGATION_IGNORE,
    SETTINGS_PROPAGATION_PANIC,
    SETTINGS_PROPAGATION_PANIC_ON_REPLICAS
};
enum settings_oom { SETTINGS_OOM_NO, SETTINGS_OOM_RELATIVE, SETTINGS_OOM_ABSOLUTE };

/* shutdown-on-sigterm, shutdown-on-sigint: bits; 0 is "default". */
enum settings_shutdown {
    SETTINGS_SHUTDOWN_SAVE = 1,
    SETTINGS_SHUTDOWN_NOSAVE = 2,
    SETTINGS_SHUTDOWN_NOW = 4,
    SETTINGS_SHUTDOWN_FORCE = 8
};

enum { SETTINGS_HZ_MIN = 1, SETTINGS_HZ_MAX = 500 };

/* The classes of clients that have limits of their own. */
enum client_type { CLIENT_TYPE_NORMAL, CLIENT_TYPE_REPLICA, CLIENT_TYPE_PUBSUB, CLIENT_TYPES };

struct settings_save {
    int64_t seconds;
    int64_t changes;
};

struct settings_limit {
    uint64_t hard, soft; /* bytes; 0: none */
    int64_t soft_seconds;
};

struct settings {
#define X(field, name, alias, value, flags) bool field;
    SETTINGS_BOOL(X)
#undef X
#define X(field, name, alias, value, min, max, flags) int64_t field;
    SETTINGS_INT(X)
#undef X
#define X(field, name, alias, value, min, max, flags) uint64_t field;
    SETTINGS_SIZE(X)
#undef X
#define X(field, name, alias, value, flags) char *field;
    SETTINGS_STR(X)
#undef X
#define X(field, name, alias, value, flags) int field;
    SETTINGS_ENUM(X)
#undef X
    size_t requirepass_len, masterauth_len; /* passwords can contain NUL bytes */
    struct settings_save *save;
    size_t n_save;
    char **bind;
    size_t n_bind;
    char *dir; /* as given at the start; CONFIG GET returns the working directory */
    struct settings_limit client_output_buffer_limit[CLIENT_TYPES]; /* by enum client_type */
    unsigned notify_keyspace_events;                                /* enum engine_notify */
    int oom_score_adj_values[3];
    double latency_tracking_info_percentiles[16];
    size_t n_latency_tracking_info_percentiles;
    char *proc_title_template;
    char *replicaof_host; /* NULL: not a replica */
    int64_t replicaof_port;

    /* Other lines of the file. Lines of users and modules are kept as they were read, those of
     * modules without their first word. */
    struct settings_rename {
        char *from, *to;
    } * renames;
    size_t n_renames;
    struct names names; /* the same, of commands */
    char **users;
    size_t n_users;
    char **modules;
    size_t n_modules;

    /* A Sentinel: set before the file is read. Its lines are those that begin with `sentinel`. */
    bool sentinel;
    struct settings_sentinel_line {
        char *text;
        size_t number; /* of the line in the file */
    } * sentinel_lines;
    size_t n_sentinel_lines;
};

/* maxmemory-clients in bytes, even if it is a percentage of maxmemory; 0: no limit. */
uint64_t settings_maxmemory_clients(const struct settings *s);

/* requirepass, which can contain any bytes; empty: no password. */
static inline struct rd_slice settings_password(const struct settings *s)
{
    return rd_slice(s->requirepass, s->requirepass_len);
}

/* redoubt-level: whose commands clients and rules can use. */
static inline enum engine_level settings_level(const struct settings *s)
{
    return s->sentinel ? ENGINE_LEVEL_SENTINEL : (enum engine_level)s->redoubt_level;
}

/* REPLICAOF: the master is part of the settings; host NULL: none. */
void settings_follow(struct settings *s, const char *host, int port);

void settings_init(struct settings *s);
void settings_done(struct settings *s);

/* What the parts of the server know about lines of a file. */
struct settings_readers {
    /* A user line: the words after `user`. False: *why is the error. */
    bool (*user)(const struct settings *s, const struct rd_slice *words, size_t n,
                 struct rd_buf *why);
    void (*note)(const char *text); /* for the log */
};

/* argv is that of main(): [FILE | -] [--option value …]; argv[1] is a file unless it begins with
 * '-'. main handles --help, --version and --test-memory. *ret_file: the absolute path of the file,
 * to be freed, or NULL. On failure why is the message: for stderr if it begins with a line end
 * (several lines: FATAL CONFIG FILE ERROR with line number and line, as in Redis 7.0), else for the
 * log. Changes the working directory if the file says so. */
bool settings_load(struct settings *s, int argc, char **argv,
                   const struct settings_readers *readers, char **ret_file, struct rd_buf *why);

/* The settings that the engine keeps. */
void settings_to_engine(const struct settings *s, struct engine_config *config);

/* The process title from a template, ended by a NUL; config_file may be NULL. False: the template
 * has unknown variables, or the title is blank. */
bool settings_title(const struct settings *s, const char *config_file, const char *template,
                    const char *title, struct rd_buf *ret);

/* CONFIG GET: the value as text; false: unknown directive. Names are case-insensitive. */
bool settings_get(const struct settings *s, const char *name, struct rd_buf *ret);

/* Returns whether the value of this directive is a password, which logs of commands must not
 * contain. */
bool settings_secret(struct rd_slice name);

/* Converts "1gb", "yes" …; the letters of keyspace events: "KEA" to bits and back; UINT_MAX: wrong
 * letter. */
unsigned settings_events_parse(struct rd_slice letters);
void settings_events_print(unsigned events, struct rd_buf *ret);

#endif
