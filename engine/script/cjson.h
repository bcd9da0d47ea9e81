/* cjson.h - private to engine/script/: the settings of one cjson table.
 */
#ifndef ENGINE_SCRIPT_CJSON_H
#define ENGINE_SCRIPT_CJSON_H

#include "engine/script/vm_impl.h"

enum { CJSON_REFUSE, CJSON_ALLOW, CJSON_NULL };

struct cjson {
    int sparse_convert, sparse_ratio, sparse_safe;
    int encode_depth, decode_depth;
    int encode_invalid, decode_invalid; /* numbers such as NaN */
    int keep_buffer;                    /* kept for scripts that set it; has no effect */
    int precision;                      /* decimal digits of numbers */
};

/* Of the table to which the running function belongs. */
struct cjson *script_cjson(lua_State *L);

int script_cjson_encode(lua_State *L); /* cjson_encode.c */
int script_cjson_decode(lua_State *L); /* cjson_decode.c */

#endif
