SELECT name, avg(makespan_s) AS seconds, avg(concurrency_running_mean) AS running,
       100 * avg(pages_mean_live_fraction) AS "live %", avg(preemptions)::INT AS preempted
FROM runs GROUP BY name ORDER BY seconds DESC
