WITH counted AS (
    SELECT engine_page_size AS size, pages_peak_used AS pages, ceil(tokens_prompt / engine_page_size) AS by_sum,
           (pages_peak_used * engine_page_size - tokens_prompt) / requests_injected AS empty
    FROM runs
)
SELECT size AS "page size", avg(pages)::INT AS pages, avg(by_sum)::INT AS "by the sum", avg(pages - by_sum) AS short,
       100 * avg(1 - by_sum / pages) AS "short, %", avg(empty) AS "empty each"
FROM counted GROUP BY size ORDER BY size
