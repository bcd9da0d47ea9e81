/* csv.c - the table with the columns of redis-rdb-tools. */
#include "tools/stat/report.h"

#include "base/num.h"

bool stat_csv_begin(struct rd_sink *out, struct rd_err *err)
{
    static const char head[] = "database,type,key,size_in_bytes,encoding,num_elements,"
                               "len_largest_element,expiry\n";
    if (rd_sink_write(out, head, sizeof head - 1))
        return true;
    rd_err_adopt(err, rd_sink_err(out));
    return false;
}

static void put_text(struct rd_sink *out, const char *text)
{
    rd_sink_write(out, text, strlen(text));
}

static void put_number(struct rd_sink *out, uint64_t v)
{
    char digits[RD_NUM_I64_MAX];
    rd_sink_write(out, digits, rd_num_put_u64(digits, v));
    rd_sink_byte(out, ',');
}

static bool is_plain(uint8_t c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_escaped(struct rd_sink *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    const char text[] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
    rd_sink_write(out, text, sizeof text);
}

static void put_special(struct rd_sink *out, uint8_t c)
{
    if (c == '"') {
        put_text(out, "\"\"");
    } else if (c == '\\') {
        put_text(out, "\\\\");
    } else {
        put_escaped(out, c);
    }
}

/* Spreadsheets read a cell that begins with = + - or @ as a formula, even in quotes. */
static void put_name(struct rd_sink *out, struct rd_slice name)
{
    bool formula = name.len > 0 && name.ptr[0] != 0 && strchr("=+-@", name.ptr[0]) != NULL;
    rd_sink_byte(out, '"');
    if (formula)
        put_escaped(out, name.ptr[0]);
    for (size_t i = formula; i < name.len;) {
        size_t from = i;
        while (i < name.len && is_plain(name.ptr[i]))
            i++;
        rd_sink_write(out, name.ptr + from, i - from);
        if (i < name.len)
            put_special(out, name.ptr[i++]);
    }
    rd_sink_byte(out, '"');
}

bool stat_csv_row(void *sink, const struct stat_key *key, struct rd_err *err)
{
    struct rd_sink *out = sink;
    put_number(out, key->db);
    put_text(out, rdb_kind_name(key->type->kind));
    rd_sink_byte(out, ',');
    put_name(out, key->name);
    rd_sink_byte(out, ',');
    put_number(out, key->memory);
    put_text(out, key->type->encoding);
    rd_sink_byte(out, ',');
    put_number(out, key->elements);
    put_number(out, key->largest);
    if (key->expire_ms != RDB_NO_EXPIRE)
        put_text(out, rd_show_time(key->expire_ms).s);
    rd_sink_byte(out, '\n');
    if (!out->failed)
        return true;
    rd_err_adopt(err, rd_sink_err(out));
    return false;
}
