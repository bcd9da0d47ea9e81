/* Checks of text values. */
#include <stdio.h>

#include "server/settings/item.h"

static bool refuse(struct settings_reading *reading, const char *what, const char *why,
                   const char *more)
{
    snprintf(reading->why, sizeof reading->why, "%s%s%s", what, why, more);
    return false;
}

static bool one_name(const char *text, struct settings_reading *reading, const char *directive,
                     const char *kind, bool empty_too)
{
    if (strchr(text, '/') != NULL)
        return refuse(reading, directive, " can't be a path, just a ", kind);
    if (*text == '\0' && !empty_too)
        return refuse(reading, directive, " can't be empty", "");
    return true;
}

static bool one_host(const char *text, struct settings_reading *reading)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    if (strlen(text) >= 256)
        return refuse(reading, "Hostnames must be less than 256 characters", "", "");
    if (text[strspn(text, good)] != '\0')
        return refuse(
            reading, "Hostnames may only contain alphanumeric characters, hyphens or dots", "", "");
    return true;
}

bool settings_item_sound(const struct settings_item *item, const char *text,
                         struct settings_reading *reading)
{
    if (strcmp(item->name, "dbfilename") == 0)
        return one_name(text, reading, item->name, "filename", true);
    if (strcmp(item->name, "appendfilename") == 0)
        return one_name(text, reading, item->name, "filename", false);
    if (strcmp(item->name, "appenddirname") == 0)
        return one_name(text, reading, item->name, "dirname", false);
    if (strcmp(item->name, "cluster-announce-hostname") == 0)
        return one_host(text, reading);
    return true;
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
