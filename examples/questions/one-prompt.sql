SELECT name, 100 * cache_hit_rate AS "found, %", tokens_computed AS computed, rates_finished_per_s AS "req/s",
       ttft_s_p50 AS "median TTFT s", pages_peak_used AS pages
FROM runs ORDER BY computed
