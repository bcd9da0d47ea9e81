#include "rebuild/place.h"

#include "base/num.h"

bool rebuild_place_parse(struct rebuild_place *ret, const char *text, struct rd_err *err)
{
    struct rebuild_place place = {.index = SIZE_MAX};
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    if (len >= sizeof place.file || (colon != NULL && len == 0) ||
        !rd_num_get_u64(rd_slice_str(colon != NULL ? colon + 1 : text), &place.number))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "\"%.100s\" is not a position: use a number, or FILE:N", text);
    memcpy(place.file, text, len);
    *ret = place;
    return true;
}

void rebuild_place_begin_file(struct rebuild_place *place, const char *name, size_t index)
{
    if (strcmp(place->file, name) == 0)
        place->index = index;
}

bool rebuild_place_missing(const struct rebuild_place *place)
{
    return place->file[0] != '\0' && place->index == SIZE_MAX;
}

int rebuild_place_compare(const struct rebuild_place *place, size_t index, uint64_t offset)
{
    bool any = place->file[0] == '\0' && place->index == SIZE_MAX;
    if (any || place->index == index)
        return offset < place->number ? -1 : offset > place->number;
    return place->index == SIZE_MAX || index < place->index ? -1 : 1;
}
