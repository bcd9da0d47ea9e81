#include "archive/azure_list.h"

#include "archive/xml.h"

#include <stdio.h>

struct list {
    struct archive_page page;
    bool has_marker, folder;
    char marker[ARCHIVE_POSITION_MAX];
};

/* Accounts with hierarchical namespaces list folders beside objects. */
static bool end_of_blob(struct list *list)
{
    bool folder = list->folder;
    list->folder = false;
    if (!folder)
        return archive_page_end(&list->page);
    archive_page_skip(&list->page);
    return true;
}

/* EnumerationResults/Blobs/Blob/Properties */
static bool on_end(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct list *list = ctx;
    if (depth == 3 && strcmp(name, "Name") == 0)
        archive_page_key(&list->page, text);
    else if (depth == 4 && strcmp(name, "Content-Length") == 0)
        archive_page_size(&list->page, text);
    else if (depth == 4 && strcmp(name, "Etag") == 0)
        archive_page_version(&list->page, text);
    else if (depth == 4 && strcmp(name, "ResourceType") == 0)
        list->folder = rd_slice_is(text, "directory");
    else if (depth == 2 && strcmp(name, "Blob") == 0)
        return end_of_blob(list);
    else if (depth == 1 && strcmp(name, "NextMarker") == 0)
        list->has_marker = archive_page_copy(list->marker, sizeof list->marker, text) ||
                           archive_page_wrong(&list->page, "its next position is too long");
    return list->page.wrong == NULL;
}

bool archive_azure_page(struct rd_slice xml, const char *prefix, size_t skip, archive_each_fn *each,
                        void *arg, char ret_marker[ARCHIVE_POSITION_MAX], struct rd_err *err)
{
    struct list list = {.has_marker = false};
    bool ok = archive_xml(xml, "EnumerationResults", on_end, &list, err) ||
              archive_page_fail(&list.page, err);
    ok = ok && (list.has_marker || archive_page_bad("it does not say whether it is complete", err));
    if (ok && archive_page_check(&list.page, prefix, false, err)) {
        archive_page_each(&list.page, skip, each, arg);
        snprintf(ret_marker, ARCHIVE_POSITION_MAX, "%s", list.marker);
    } else {
        ok = false;
    }
    archive_page_done(&list.page);
    return ok;
}
