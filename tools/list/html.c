/* html.c - the list as a page. */
#include "tools/list/list.h"
#include "tools/page/page.h"

#include "tools/list_page.h"

bool list_html_write(struct rd_sink *out, struct rd_slice json, struct rd_err *err)
{
    return page_write(out, rd_slice(list_page, sizeof list_page), json, err);
}
