#include "base/queue.h"

#include <criterion/criterion.h>
#include <stdalign.h>

#include "tests/support/alloc_fault.h"

struct job {
    int number;
    struct rd_slice name;
    const char *text;
};

static bool add(struct rd_queue *queue, int number, const char *name, const char *text)
{
    struct job *job = rd_queue_add(queue, sizeof *job + strlen(name) + rd_queue_text_size(text));
    if (job == NULL)
        return false;
    uint8_t *at = (uint8_t *)(job + 1);
    cr_assert_eq((uintptr_t)job % alignof(max_align_t), 0);
    cr_assert_eq(job->number, 0);
    job->number = number;
    job->name = rd_queue_keep(&at, rd_slice_str(name));
    job->text = rd_queue_keep_text(&at, text);
    return true;
}

Test(queue, gives_blocks_in_the_order_in_which_they_were_added)
{
    struct rd_queue queue = {0};
    char name[] = "one";
    cr_assert(add(&queue, 1, name, "first"));
    name[0] = 'x';
    cr_assert(add(&queue, 2, "", NULL));
    struct job *job = rd_queue_take(&queue);
    cr_expect_eq(job->number, 1);
    cr_expect(rd_slice_is(job->name, "one"));
    cr_expect_str_eq(job->text, "first");
    cr_assert(add(&queue, 3, "three", ""));
    cr_expect_eq(job->number, 1, "a block stays valid until the next one is taken");
    job = rd_queue_take(&queue);
    cr_expect_eq(job->number, 2);
    cr_expect_eq(job->name.len, 0);
    cr_expect_null(job->text);
    job = rd_queue_take(&queue);
    cr_expect_eq(job->number, 3);
    cr_expect_str_eq(job->text, "");
    cr_expect_null(rd_queue_take(&queue));
    cr_assert(add(&queue, 4, "", NULL));
    cr_expect_eq(((struct job *)rd_queue_take(&queue))->number, 4);
    rd_queue_done(&queue);
}

Test(queue, frees_the_blocks_that_nobody_takes)
{
    struct rd_queue queue = {0};
    for (int i = 0; i < 10; i++)
        cr_assert(add(&queue, i, "name", "text"));
    cr_assert_not_null(rd_queue_take(&queue));
    rd_queue_done(&queue);
    cr_expect_null(queue.first);
    cr_expect_null(queue.last);
    cr_expect_null(queue.given);
}

Test(queue, a_block_that_cannot_be_allocated_leaves_it_as_it_was)
{
    struct rd_queue queue = {0};
    alloc_fault_begin(2);
    cr_assert(add(&queue, 1, "a", NULL));
    cr_assert_not(add(&queue, 2, "b", NULL));
    cr_assert(add(&queue, 3, "c", NULL));
    cr_expect_eq(((struct job *)rd_queue_take(&queue))->number, 1);
    cr_expect_eq(((struct job *)rd_queue_take(&queue))->number, 3);
    rd_queue_done(&queue);
    cr_assert_eq(alloc_fault_end().live, 0);
}
