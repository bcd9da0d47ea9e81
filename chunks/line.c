#include "chunks/line_impl.h"

#include <unistd.h>

static void work_on(struct chunks_line *line, struct chunks_job *job)
{
    struct rd_slice plain = rd_buf_slice(&job->plain);
    job->blob.raw = (uint32_t)plain.len;
    if (chunks_blob_name(line->key, (enum chunks_kind)job->blob.kind, plain, job->blob.name,
                         &job->err))
        chunks_blob_encode(&line->codec, job->blob.name, plain, &job->stored, &job->err);
}

static void *run(void *arg)
{
    struct chunks_line *line = arg;
    pthread_mutex_lock(&line->mutex);
    while (!line->stop) {
        if (line->n_done == line->n_pushed) {
            pthread_cond_wait(&line->changed, &line->mutex);
            continue;
        }
        struct chunks_job *job = &line->jobs[line->n_done % CHUNKS_JOBS];
        pthread_mutex_unlock(&line->mutex);
        work_on(line, job);
        pthread_mutex_lock(&line->mutex);
        line->n_done++;
        pthread_cond_broadcast(&line->changed);
    }
    pthread_mutex_unlock(&line->mutex);
    return NULL;
}

bool chunks_line_init(struct chunks_line *line, const struct chunks_codec *codec,
                      const uint8_t key[CHUNKS_KEY], int level, struct rd_err *err)
{
    *line = (struct chunks_line){.codec = *codec};
    memcpy(line->key, key, CHUNKS_KEY);
    pthread_mutex_init(&line->mutex, NULL);
    pthread_cond_init(&line->changed, NULL);
    if (!chunks_codec_init(&line->codec, level, err))
        return false;
    /* Without a second processor, or a thread, jobs are done when they are pushed. */
    line->running =
        sysconf(_SC_NPROCESSORS_ONLN) > 1 && pthread_create(&line->thread, NULL, run, line) == 0;
    return true;
}

void chunks_line_done(struct chunks_line *line)
{
    if (line->running) {
        pthread_mutex_lock(&line->mutex);
        line->stop = true;
        pthread_cond_broadcast(&line->changed);
        pthread_mutex_unlock(&line->mutex);
        pthread_join(line->thread, NULL);
        line->running = false;
    }
    for (size_t i = 0; i < CHUNKS_JOBS; i++) {
        rd_buf_done(&line->jobs[i].plain);
        rd_buf_done(&line->jobs[i].stored);
    }
    chunks_codec_done(&line->codec);
}

struct chunks_job *chunks_line_slot(struct chunks_line *line)
{
    if (line->n_pushed - line->n_taken == CHUNKS_JOBS)
        return NULL;
    struct chunks_job *job = &line->jobs[line->n_pushed % CHUNKS_JOBS];
    rd_buf_reset(&job->plain);
    rd_buf_reset(&job->stored);
    job->err = (struct rd_err){0};
    return job;
}

void chunks_line_push(struct chunks_line *line)
{
    if (!line->running) {
        work_on(line, &line->jobs[line->n_pushed++ % CHUNKS_JOBS]);
        line->n_done++;
        return;
    }
    pthread_mutex_lock(&line->mutex);
    line->n_pushed++;
    pthread_cond_broadcast(&line->changed);
    pthread_mutex_unlock(&line->mutex);
}

struct chunks_job *chunks_line_take(struct chunks_line *line, bool wait)
{
    struct chunks_job *job = NULL;
    pthread_mutex_lock(&line->mutex);
    while (wait && line->n_taken < line->n_pushed && line->n_done == line->n_taken)
        pthread_cond_wait(&line->changed, &line->mutex);
    if (line->n_taken < line->n_done)
        job = &line->jobs[line->n_taken % CHUNKS_JOBS];
    pthread_mutex_unlock(&line->mutex);
    return job;
}

void chunks_line_drop(struct chunks_line *line)
{
    pthread_mutex_lock(&line->mutex);
    line->n_taken++;
    pthread_mutex_unlock(&line->mutex);
}
