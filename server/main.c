/* redoubt-server: the command line of redis-server. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "server/surface/config/config.h"
#include "server/session/acl/acl.h"
#include "server/surface/observe/crash.h"
#include "server/loop/daemon.h"
#include "server/loop/log.h"
#include "server/loop/memory_test.h"
#include "server/surface/node/node.h"
#include "server/surface/server.h"
#include "server/surface/watch/watch.h"
#include "server/settings/item.h"
#include "server/settings/text.h"

static const char usage_text[] =
    "Usage: redoubt-server [/path/to/redis.conf] [options] [-]\n"
    "       redoubt-server - (read config from stdin)\n"
    "       redoubt-server -v, -V or --version\n"
    "       redoubt-server -h or --help\n"
    "       redoubt-server --test-memory <megabytes>\n"
    "       redoubt-server --check-system\n"
    "       redoubt-server /path/to/sentinel.conf --sentinel\n"
    "\n"
    "A server with the commands, files and settings of Redis 7.0.15. Options are the lines of\n"
    "redis.conf, with two leading dashes:\n"
    "       redoubt-server\n"
    "       redoubt-server /etc/redis/6379.conf --loglevel verbose\n"
    "       redoubt-server --port 7777 --appendonly yes --save \"\"\n"
    "       echo 'maxmemory 128mb' | redoubt-server -\n";

#ifdef REDOUBT_JEMALLOC
extern int mallctl(const char *name, void *old, size_t *old_len, void *fresh, size_t fresh_len);

static const char *heap(void)
{
    static char text[64];
    const char *version = "";
    size_t len = sizeof version;
    if (mallctl("version", &version, &len, NULL, 0) != 0)
        version = "unknown";
    snprintf(text, sizeof text, "jemalloc-%.*s", (int)strcspn(version, "-"), version);
    return text;
}
#else
static const char *heap(void)
{
    return "libc";
}
#endif

static int print_version(void)
{
    printf("Redis server v=%s sha=00000000:0 malloc=%s bits=%d build=0 redoubt=%s\n",
           SERVER_REDIS_VERSION, heap(), (int)sizeof(void *) * 8, REDOUBT_VERSION_STRING);
    return 0;
}

/* Options that need no configuration. As in redis-server, what follows the first three is not
 * read. -1: none of them was given. */
static int run_alone(int argc, char **argv)
{
    const char *option = argc >= 2 ? argv[1] : "";
    if (strcmp(option, "-v") == 0 || strcmp(option, "-V") == 0 || strcmp(option, "--version") == 0)
        return print_version();
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
        fputs(usage_text, stderr);
        return 1;
    }
    if (strcmp(option, "--check-system") == 0)
        return daemon_check_system();
    if (strcmp(option, "--test-memory") == 0)
        return memory_test_main(argc, argv);
    return -1;
}

/* By the name redis-sentinel or redoubt-sentinel, or by --sentinel. */
static bool is_sentinel(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash != NULL ? slash + 1 : argv[0];
    bool found = strstr(name, "-sentinel") != NULL;
    for (int i = 1; i < argc && !found; i++)
        found = strcmp(argv[i], "--sentinel") == 0;
    return found;
}

static void set_sentinel(struct settings *s)
{
    s->sentinel = true;
    s->port = SENTINEL_PORT;
    s->protected_mode = false;
    watch_add_commands();
}

static char *own_path(const char *name)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path);
    return len > 0 ? settings_text_copy(path, (size_t)len) : settings_text_copy(name, strlen(name));
}

/* Rejects settings that this server does not support. */
static bool can_be_served(const struct settings *s)
{
    if (s->n_modules != 0) {
        log_warning("Can't load module from %s: server aborting, modules are not supported",
                    s->modules[0]);
        return false;
    }
    return true;
}

static void note(const char *text)
{
    log_warning("%s", text);
}

static void print_failure(bool ok, struct rd_buf *why)
{
    if (!ok && why->len > 0 && why->ptr[0] == '\n')
        fprintf(stderr, "%.*s", (int)why->len, (const char *)why->ptr);
    else if (!ok)
        log_warning("%.*s", (int)why->len, (const char *)why->ptr);
    rd_buf_done(why);
}

static bool load_settings(struct server *srv, int argc, char **argv)
{
    static const struct settings_readers readers = {.user = acl_check_line, .note = note};
    struct rd_buf why = {0};
    bool ok =
        settings_load(&srv->loop.settings, argc, argv, &readers, &srv->loop.config_file, &why);
    print_failure(ok, &why);
    return ok;
}

static bool load_sentinel(struct server *srv)
{
    struct rd_buf why = {0};
    bool ok = watch_new(srv, &why);
    print_failure(ok, &why);
    return ok;
}

static bool load_node(struct server *srv)
{
    struct rd_buf why = {0};
    bool ok = node_new(srv, &why);
    print_failure(ok, &why);
    return ok;
}

static void log_start(int argc, char **argv)
{
    log_warning("oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo");
    log_warning("Redis version=%s, bits=%d, commit=00000000, modified=0, pid=%d, just started",
                SERVER_REDIS_VERSION, (int)sizeof(void *) * 8, (int)getpid());
    log_notice("This is redoubt-server %s", REDOUBT_VERSION_STRING);
    if (argc == 1)
        log_warning("Warning: no config file specified, using the default config. In order to "
                    "specify a config file use %s /path/to/redis.conf",
                    argv[0]);
    else
        log_warning("Configuration loaded");
}

int main(int argc, char **argv)
{
    static struct server srv;
    rd_os_begin();
    daemon_begin(argc, argv);
    setlocale(LC_COLLATE, "");
    tzset();
    umask(umask(0777) & 0777);
    int status = run_alone(argc, argv);
    if (status >= 0)
        return status;

    srv.loop.executable = own_path(argv[0]);
    settings_init(&srv.loop.settings);
    if (is_sentinel(argc, argv))
        set_sentinel(&srv.loop.settings);
    if (!load_settings(&srv, argc, argv))
        return 1;
    if (srv.loop.config_file != NULL)
        daemon_config_file(srv.loop.config_file);
    log_setup(&srv.loop.settings);
    if (srv.loop.settings.sentinel)
        log_role('X');
    daemon_enter(&srv.loop.settings);
    log_start(argc, argv);
    if (!can_be_served(&srv.loop.settings))
        return 1;
    config_warn_unused(&srv.loop.settings, NULL);

    if (!srv.loop.settings.sentinel)
        log_role(srv.loop.settings.replicaof_host != NULL ? 'S' : 'M');
    else if (!load_sentinel(&srv))
        return 1;
    if (srv.loop.settings.cluster_enabled && !load_node(&srv))
        return 1;
    crash_watch(&srv);
    if (!daemon_prepare(&srv.loop))
        return 1;
    log_notice("monotonic clock: POSIX clock_gettime");
    server_init(&srv);
    if (!acl_load_at_start(&srv.sessions))
        return 1;
    return server_run(&srv);
}
