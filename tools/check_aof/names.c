/* names.c - counts the commands of a log by name, for check-aof -v.
 *
 * Names are case-insensitive. The table has a fixed number of names; commands with further or
 * longer names are counted together, so that memory is bounded.
 */
#include "base/mem.h"
#include "tools/check_aof/check_aof.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NAME_MOST = 40, NAMES_MOST = 512, SLOTS = 1024, SHOWN = 20 };

struct name {
    char text[NAME_MOST]; /* in capitals; a NUL follows it */
    uint64_t n;
};

struct aof_job_names {
    struct name all[NAMES_MOST];
    size_t n_all;
    uint16_t slots[SLOTS]; /* index in `all` + 1; 0: free */
    uint64_t others;
};

bool aof_job_names_new(struct aof_job_names **ret, struct rd_err *err)
{
    *ret = rd_calloc(1, sizeof **ret);
    return *ret != NULL || rd_err_nomem(err, sizeof **ret);
}

/* FNV-1a. */
static size_t slot_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return (hash ^ hash >> 16) % SLOTS;
}

void aof_job_names_add(struct aof_job_names *names, struct rd_slice name)
{
    char text[NAME_MOST];
    bool fits = name.len > 0 && name.len < sizeof text && memchr(name.ptr, 0, name.len) == NULL;
    if (!fits) {
        names->others++;
        return;
    }
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        text[i] = (char)(c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c);
    }
    text[name.len] = '\0';
    size_t at = slot_of(text);
    for (; names->slots[at] != 0; at = (at + 1) % SLOTS) {
        struct name *known = &names->all[names->slots[at] - 1];
        if (strcmp(known->text, text) == 0) {
            known->n++;
            return;
        }
    }
    if (names->n_all == NAMES_MOST) {
        names->others++;
        return;
    }
    struct name *added = &names->all[names->n_all++];
    memcpy(added->text, text, name.len + 1);
    added->n = 1;
    names->slots[at] = (uint16_t)names->n_all;
}

static int by_number(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->text, y->text);
}

void aof_job_names_end(struct aof_job_names *names)
{
    qsort(names->all, names->n_all, sizeof *names->all, by_number);
    for (size_t i = SHOWN; i < names->n_all; i++)
        names->others += names->all[i].n;
    if (names->n_all > SHOWN)
        names->n_all = SHOWN;
}

void aof_job_names_report(FILE *out, const struct aof_job_names *names)
{
    char quoted[4 * NAME_MOST + 3];
    for (size_t i = 0; i < names->n_all; i++) {
        rd_show_escape(quoted, sizeof quoted, rd_slice_str(names->all[i].text));
        fprintf(out, "  %-10s %12s %s\n", i == 0 ? "commands" : "",
                rd_show_count(names->all[i].n).s, quoted);
    }
    if (names->others > 0)
        fprintf(out, "  %-10s %12s %s\n", names->n_all == 0 ? "commands" : "",
                rd_show_count(names->others).s, "with other names");
}

void aof_job_names_json(struct json_write *json, const struct aof_job_names *names)
{
    json_key(json, "commands_by_name");
    json_obj(json);
    for (size_t i = 0; i < names->n_all; i++) {
        json_key_bytes(json, rd_slice_str(names->all[i].text));
        json_uint(json, names->all[i].n);
    }
    json_end(json);
    json_put_uint(json, "commands_of_other_names", names->others);
}
