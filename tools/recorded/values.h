/* values.h - the elements of a mirrored value, one after the other, with their writers.
 *
 *     struct recorded_values values;
 *     struct recorded_value value;
 *     bool ok = recorded_values_begin(&values, mirror);
 *     while (ok && recorded_values_next(&values, &value))
 *         ok = recorded_put_value(out, mirror, &value, cut) && …;
 *     recorded_values_end(&values);
 *
 * Fields, members and groups come in the order of their names, elements and entries in their own.
 * A string comes in runs of bytes with one writer.
 */
#ifndef TOOLS_RECORDED_VALUES_H
#define TOOLS_RECORDED_VALUES_H

#include "history/mirror.h"
#include "tools/cli/cli.h"

struct recorded_values {
    const struct history_mirror *m;
    struct history_element **map, **beside; /* sorted */
    size_t at;
};

struct recorded_value {
    enum history_part_of of;
    struct rd_slice name, content;
    uint64_t index;
    uint32_t writer;
};

/* False: out of memory. */
bool recorded_values_begin(struct recorded_values *values, const struct history_mirror *m);
bool recorded_values_next(struct recorded_values *values, struct recorded_value *ret);
void recorded_values_end(struct recorded_values *values);

/* The number of its elements; of a string, of bytes. And what they are called: "fields". */
uint64_t recorded_length(const struct history_mirror *m);
const char *recorded_unit(const struct history_mirror *m, uint64_t n);

/* As text: `"field" "value"`, `[3] "element"`, `5-1 "field" "value"`, `at 17 "bytes"`. */
bool recorded_put_value(struct rd_buf *out, const struct history_mirror *m,
                        const struct recorded_value *value, size_t cut);
/* Its content alone. */
bool recorded_put_content(struct rd_buf *out, const struct history_mirror *m,
                          enum history_part_of of, struct rd_slice content, size_t cut);
bool recorded_put_id(struct rd_buf *out, struct rd_slice id);
/* The fields of an entry of a stream. */
bool recorded_put_fields(struct rd_buf *out, struct rd_slice fields, size_t cut);
bool recorded_next_field(struct rd_slice *fields, struct rd_slice *ret);

/* As JSON, into an open object: field, member, index, id or group, and value or score or fields. */
void recorded_json_value(struct json_write *json, const struct history_mirror *m,
                         const struct recorded_value *value, const char *content_key);

#endif
