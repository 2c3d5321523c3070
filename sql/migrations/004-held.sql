-- SPDX-License-Identifier: MIT
-- Which process of il-fcgi holds the first response to a job back, until its
-- answer is there or some time is over; -1: none does.

ALTER TABLE jobs ADD COLUMN held_by INTEGER NOT NULL DEFAULT -1;

PRAGMA user_version = 4;
