"""From samples to the Markdown table of compare.py. Pure functions."""
import statistics


def share_of_limit(sample, limits):
    """Reached / possible, as `bench engine` defines it, from a row of it and the machine's measured limits. Prefill is
    bound by arithmetic, one sequence by the bandwidth, several by the nearer of the two."""
    isa, compute = sample["isa"], sample["compute_type"]
    wanted = {"int8": "_int8_tops", "bf16": "_bf16_tflops"}.get(compute[:4], "_f32_tflops")
    peak = limits.get(isa + wanted) or limits.get(isa + "_f32_tflops")
    of_arithmetic = sample["gflops"] / (1000 * peak) if peak else 0
    if sample["test"] == "prefill":
        return of_arithmetic or None
    of_bandwidth = sample["gb_per_s"] / limits["read_gb_per_s"]
    return of_bandwidth if sample["batch"] == 1 else max(of_bandwidth, of_arithmetic)


def largest_limits(rooflines):
    """The largest of each limit: what a shared machine gives only at times is still what it can do."""
    numbers = [{key: value for key, value in one.items() if isinstance(value, (int, float))} for one in rooflines]
    return {key: max(one.get(key, 0) for one in numbers) for key in numbers[0]}


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values):
    text = number(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({number(min(values))} to {number(max(values))})"


def present(pairs, engine, metric):
    return [pair[engine][metric]["value"] for pair in pairs if metric in pair.get(engine, {})]


def better_peer(pairs, peers, metric):
    """The peer with the best median: the largest, of times the smallest. None without any."""
    medians = {peer: statistics.median(present(pairs, peer, metric)) for peer in peers if present(pairs, peer, metric)}
    best = min if metric.endswith(", s") else max
    return best(medians, key=medians.get) if medians else None


def ratios_to(pairs, ours, peer, metric):
    """Within each pair; above 1 is better for us, also where the figure is a time."""
    values = [(pair[ours][metric]["value"], pair[peer][metric]["value"]) for pair in pairs
              if metric in pair.get(ours, {}) and metric in pair.get(peer, {})]
    return [b / a if metric.endswith(", s") else a / b for a, b in values if min(a, b) > 0]


def cell(pairs, engine, metric, reason):
    values = present(pairs, engine, metric)
    parts = ([spread(values)] if values else []) + ([f"failed: {reason.replace('|', '/')}"] if reason else [])
    return "; ".join(parts) or "not measured"


def table(results, failures, ours, peers, limits):
    """results: {(file, row): [pair, ...]}, a pair {engine: {metric: sample}}; failures: {(file, row, engine): why}."""
    engines = (ours, *peers)
    lines = ["| file | | " + " | ".join([ours, "of the limit", *peers, "ratio to the better peer"]) + " |",
             "| --- |" + " --- |" * (len(peers) + 4)]
    for (file, row), pairs in results.items():
        metrics = list(dict.fromkeys(m for pair in pairs for engine in engines for m in pair.get(engine, {})))
        for metric in metrics or [row]:
            cells = [cell(pairs, engine, metric, failures.get((file, row, engine), "")) for engine in engines]
            samples = [pair[ours][metric] for pair in pairs if metric in pair.get(ours, {})]
            shares = [share_of_limit(sample, limits) for sample in samples if "gflops" in sample]
            share = f"{100 * statistics.median(shares):.0f}%" if shares and None not in shares else ""
            peer = better_peer(pairs, peers, metric)
            ratios = ratios_to(pairs, ours, peer, metric) if peer else []
            ratio = spread(ratios) + (f", {peer}" if len(peers) > 1 else "") if ratios else ""
            lines.append("| " + " | ".join([file, metric, cells[0], share, *cells[1:], ratio]) + " |")
    return "\n".join(lines)
