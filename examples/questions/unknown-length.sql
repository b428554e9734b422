SELECT name AS rule, avg(rates_output_tokens_per_s)::INT AS "tok/s", max(concurrency_running_peak) AS peak,
       avg(concurrency_running_mean) AS mean, avg(preemptions)::INT AS preempted, avg(tokens_recomputed)::INT AS recomputed,
       avg(ttft_s_mean) AS "TTFT s", avg(max_itl_s_p99) AS "gap s"
FROM runs GROUP BY name ORDER BY "tok/s" DESC
