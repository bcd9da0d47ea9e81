/* What a text must be like for the directive that takes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server/settings_item.h"

static const char *one_name(const char *text, struct settings_reading *reading,
                            const char *directive, const char *kind, bool empty_too)
{
    if (strchr(text, '/') != NULL)
        snprintf(reading->why, sizeof reading->why, "%s can't be a path, just a %s", directive,
                 kind);
    else if (*text == '\0' && !empty_too)
        snprintf(reading->why, sizeof reading->why, "%s can't be empty", directive);
    else
        return NULL;
    return reading->why;
}

static const char *check_dbfilename(const char *text, struct settings_reading *reading)
{
    return one_name(text, reading, "dbfilename", "filename", true);
}

static const char *check_appendfilename(const char *text, struct settings_reading *reading)
{
    return one_name(text, reading, "appendfilename", "filename", false);
}

static const char *check_appenddirname(const char *text, struct settings_reading *reading)
{
    return one_name(text, reading, "appenddirname", "dirname", false);
}

static const char *check_hostname(const char *text, struct settings_reading *reading)
{
    (void)reading;
    if (strlen(text) >= 256)
        return "Hostnames must be less than 256 characters";
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    if (text[strspn(text, good)] != '\0')
        return "Hostnames may only contain alphanumeric characters, hyphens or dots";
    return NULL;
}

/* A log that cannot be written is told before the first line is lost. */
static const char *check_logfile(const char *text, struct settings_reading *reading)
{
    if (*text == '\0')
        return NULL;
    int fd = open(text, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        snprintf(reading->why, sizeof reading->why, "Can't open the log file: %s", strerror(errno));
        return reading->why;
    }
    close(fd);
    return NULL;
}

const char *settings_item_refuse(const struct settings_item *item, const char *text,
                                 struct settings_reading *reading)
{
    static const struct {
        const char *name;
        const char *(*check)(const char *text, struct settings_reading *reading);
    } checks[] = {
        {"dbfilename", check_dbfilename},
        {"appendfilename", check_appendfilename},
        {"appenddirname", check_appenddirname},
        {"cluster-announce-hostname", check_hostname},
        {"logfile", check_logfile},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (strcmp(item->name, checks[i].name) == 0)
            return checks[i].check(text, reading);
    }
    return NULL;
}

/* ---- the title of the process ---- */

static bool variable(const struct settings *s, const char *config_file, const char *title,
                     struct rd_slice name, struct rd_buf *ret)
{
    bool tcp = s->port != 0 || s->tls_port != 0;
    if (rd_slice_is(name, "title"))
        rd_buf_printf(ret, "%s", title);
    else if (rd_slice_is(name, "listen-addr") && tcp)
        rd_buf_printf(ret, "%s:%lld", s->n_bind != 0 ? s->bind[0] : "*",
                      (long long)(s->port != 0 ? s->port : s->tls_port));
    else if (rd_slice_is(name, "listen-addr") || rd_slice_is(name, "unixsocket"))
        rd_buf_printf(ret, "%s", s->unixsocket);
    else if (rd_slice_is(name, "server-mode"))
        rd_buf_printf(ret, "%s", s->cluster_enabled ? "[cluster]" : "");
    else if (rd_slice_is(name, "port"))
        rd_buf_printf(ret, "%lld", (long long)s->port);
    else if (rd_slice_is(name, "tls-port"))
        rd_buf_printf(ret, "%lld", (long long)s->tls_port);
    else if (rd_slice_is(name, "config-file"))
        rd_buf_printf(ret, "%s", config_file != NULL ? config_file : "");
    else
        return false;
    return true;
}

bool settings_title(const struct settings *s, const char *config_file, const char *template,
                    const char *title, struct rd_buf *ret)
{
    rd_buf_reset(ret);
    for (const char *at = template; *at != '\0'; at++) {
        if (*at != '{') {
            rd_buf_add_byte(ret, (uint8_t)*at);
        } else if (at[1] == '{') {
            rd_buf_add_byte(ret, '{');
            at++;
        } else {
            const char *end = strchr(at, '}');
            if (end == NULL ||
                !variable(s, config_file, title, rd_slice(at + 1, (size_t)(end - at - 1)), ret))
                return false;
            at = end;
        }
    }
    while (ret->len > 0 && ret->ptr[ret->len - 1] == ' ')
        ret->len--;
    return rd_buf_add_byte(ret, '\0') && ret->ptr[strspn((char *)ret->ptr, " ")] != '\0';
}
