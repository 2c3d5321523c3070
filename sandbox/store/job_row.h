#ifndef JOB_ROW_H
#define JOB_ROW_H

struct job;
struct sqlite3_stmt;

/* Between struct job and its row: for job.c. */

/* Bind all that job_insert stores. */
void job_row_bind(struct sqlite3_stmt *s, const struct job *job);
/* Fill an initialised job from a row in the columns' order of job.sql. */
void job_row_read(struct sqlite3_stmt *s, struct job *job);

#endif
