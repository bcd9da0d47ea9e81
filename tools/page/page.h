/* page.h - reports as HTML pages: a template into which data is inserted.
 *
 * The templates are head.html, base.css, CSS of the tool, top.html, body.html of the tool,
 * data.html, base.js, JavaScript of the tool and foot.html, one after another; the build makes an
 * array of them (embed.c). A page loads nothing. Its Content-Security-Policy allows only its own
 * style and script, by their digests.
 *
 * The data is JSON in a script element of a type that no browser runs. Every "<" in it is written
 * as \u003c, so that no text can end the element.
 */
#ifndef TOOLS_PAGE_PAGE_H
#define TOOLS_PAGE_PAGE_H

#include "base/sink.h"
#include "base/slice.h"

/* The most bytes that a text takes on the page: for lists that end where their room is used up. */
uint64_t page_cost(struct rd_slice text);

bool page_write(struct rd_sink *out, struct rd_slice page, struct rd_slice json,
                struct rd_err *err);

#endif
