SELECT name AS law,
       100 * avg(occupancy) FILTER (workload_synthetic_requests = 50) AS "of 50, %",
       100 * avg(occupancy) FILTER (workload_synthetic_requests = 500) AS "of 500, %",
       100 * avg(occupancy) FILTER (workload_synthetic_requests = 5000) AS "of 5,000, %"
FROM runs GROUP BY name ORDER BY "of 5,000, %" DESC
