"""ScoPred's formulas, fits and intervals: the specification's vectors, then what must hold of any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headway.errors import UserError
from headway_plugins.prediction.applications import Application, parse_applications, parse_settings
from headway_plugins.prediction.formulas import FormulaError, parse
from headway_plugins.prediction.models import Model, Run
from headway_plugins.prediction.regression import fit
from headway_plugins.reproductions.scopred_tables import EP, EP_N, FT, FT_N, FT_PARTS, FT_SHARE, cases

HPL = "N^3/(3*P*Q) + N^2*(3*P+Q)/(2*P*Q) + N*log(P) + N*P"


def values(text, **point):
    return [float(term(point)) for term in parse(text).terms]


def shown(text):
    return [term.text for term in parse(text).terms]


def column(found):
    return np.column_stack([np.ones(len(found)), found])


# ------------------------------------------------------------ formulas


def test_p1_each_summand_is_a_term_without_its_constant_factor():
    assert shown("2*M^3 + log(N) + M*log(N)") == ["M^3", "log(N)", "M*log(N)"]


def test_p2_the_same_term_twice_is_one():
    assert shown("(N/P)*log(N) + (N/P)*log(N)") == ["N*log(N)/P"]


def test_p3_terms_as_they_are_written():
    assert values(HPL, N=6000, P=2, Q=8) == pytest.approx([4.5e9, 15.75e6, 4158.883083, 12000], rel=1e-9)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("__import__('os')", 1), ("a.b", 1), ("N if P else 1", 1), ("", 1), ("N + f(P)", 5), ("N*é", 3),
        ("N + log", 5), ("N^2 + a[0]", 7), ("N*log(1, 2)", 3), ("N//2", 1), ("N*1e999", 3), ("1+2", 1),
        ("(N", 1), ("N +", 3), ("N*True", 3), ("max(*a)", 1), ("N; M", 2), ("(" * 60 + "N" + ")" * 60, None),
        ("-" * 60 + "N", None), ("9" * 600, 501), ("+".join("abcdefghij" * 6), 1), ("N\n+1", 2),
    ],
)  # fmt: skip
def test_acceptance_1_p4_what_is_not_arithmetic_is_refused_with_its_place(text, where):
    if where is None and text.startswith("("):
        # Parentheses that change nothing are no depth.
        assert shown(text) == ["N"]
        return
    with pytest.raises(FormulaError, match=r"column \d+: ") as caught:
        parse(text)
    assert where is None or caught.value.column == where


def test_p5_the_papers_second_equation_has_four_terms():
    assert len(parse("sqrt(x) + x^2 + x*z + z").terms) == 4


def test_p6_the_textbooks_fft():
    text = "(N/P)*log(N) + 2*sqrt(P-1) + 2*(N/P)"
    assert len(parse(text).terms) == 3
    assert values(text, N=2**25, P=8) == pytest.approx([72681749.8003, 5.2915026, 8388608], rel=1e-8)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a+(b-c)+3", ["a", "(b - c)"]),
        ("(N+M)", ["(N + M)"]),
        ("(a+b)*(c+d)/2", ["(a + b)*(c + d)"]),
        ("N*log10(N) - 3*N*log2(N)", ["N*log(N)"]),
        ("2^(2*N) + 4^N", ["(2^(2 * N))"]),
        ("N*M + M*N", ["N*M"]),
        ("sqrt(N)*sqrt(N) - N", ["N"]),
        ("-N - -M", ["N", "M"]),
        ("max(N, 8) + min(N, M, 2)", ["(max(N, 8))", "(min(N, M, 2))"]),
    ],
)
def test_parentheses_group_and_what_differs_by_a_factor_is_one(text, terms):
    assert shown(text) == terms


def test_terms_that_are_alike_on_some_runs_only_stay_two():
    assert len(parse("N + N*P").terms) == 2


# ------------------------------------------------------------ regression

X, Y = np.arange(1.0, 6), np.array([5.1, 7.9, 11.2, 13.8, 17.0])


def test_r1_a_line():
    one = fit(column(X), Y)
    assert one.coefficients == pytest.approx([2.09, 2.97])
    assert (one.sse, one.sst) == pytest.approx((0.091, 88.3))
    assert (one.r2, one.adjusted_r2) == pytest.approx((0.998969422, 0.998625897), rel=1e-9)
    assert (one.f, one.f_critical) == pytest.approx((2907.989, 10.12796), rel=1e-6)
    assert (one.s, one.t) == pytest.approx((0.174164673, 3.182446305), rel=1e-9)
    assert one.significant


def test_r2_and_r20_intervals_widen_and_differ_by_the_same():
    one = fit(column(X), Y)
    mean, leverage, estimable = one.predict(column([3.0, 7.0]))
    ci, pi = one.half_widths(leverage)
    assert mean == pytest.approx([11.0, 22.88])
    assert ci == pytest.approx([0.247876954, 0.743630863], rel=1e-8)
    assert pi == pytest.approx([0.607172057, 0.927470638], rel=1e-8)
    assert estimable.all()
    assert pi**2 - ci**2 == pytest.approx([0.3072145] * 2, abs=1e-6)


def test_r3_nothing_is_explained():
    runs = [Run({"x": x}, {"runtime": y}) for x, y in zip(X, [3, 1, 2, 1, 3], strict=True)]
    one = Model(Application(formula="x"), runs)
    found = one.fits()["runtime"].fit
    assert found.coefficients == pytest.approx([2, 0], abs=1e-12)
    assert (found.r2, found.f) == pytest.approx((0, 0), abs=1e-12)
    assert not found.significant
    assert "F test" in one.predict({"x": 9}).problem


def deficient(n):
    return np.column_stack([np.ones_like(n), n**3 / 48, n**2 / 2, 2 * n, 4 * n])


def test_r4_and_r5_without_full_rank_what_the_rows_span_is_predicted_and_nothing_else():
    n = np.arange(1.0, 7)
    one = fit(deficient(n), 1 + 2 * n**3 + 0.5 * n**2 + 3 * n)
    assert (one.rank, one.df) == (4, 2)
    mean, _, estimable = one.predict(deficient(np.array([8.0])))
    assert mean[0] == pytest.approx(1081, abs=1e-8)
    assert estimable[0]
    other = deficient(np.array([8.0]))
    other[0, 4] = 72
    assert not one.predict(other)[2][0]


def test_r6_runs_at_the_very_parameters_count_alone():
    runs = [Run({"N": 8.0}, {"runtime": y}) for y in (100, 104, 99)]
    runs += [Run({"N": n}, {"runtime": 5 * n}) for n in (1.0, 2.0, 3.0)]
    found = Model(Application(formula="N"), runs).predict({"N": 8.0})
    assert (found.mean, found.ci, found.pi) == pytest.approx((101, 6.572410608, 13.144821216))
    assert (found.basis, found.n, found.valid) == ("exact", 3, True)


def test_r7_two_runs_give_a_point_and_no_interval():
    found = Model(Application(formula="N"), [Run({"N": n}, {"runtime": n}) for n in (1.0, 2.0)]).predict(
        {"N": 4.0}
    )
    assert found.mean == pytest.approx(4)
    assert (found.ci, found.pi, found.valid) == (math.inf, math.inf, False)
    assert "2 runs are too few" in found.problem


def coefficients(formula, runs):
    """Of the runs (parameters, seconds): the coefficients."""
    model = Model(Application(formula=formula), [Run(p, {"runtime": y}) for p, y in runs])
    return model, model.fits()["runtime"].fit.coefficients


def test_acceptance_4_r8_and_r9_ep_class_a():
    runs = [({"N": EP_N["A"], "P": p}, EP["A"][p]) for p in (2, 4, 6, 8, 10)]
    model, found = coefficients("N/P", runs)
    assert 1 / found[1] == pytest.approx(3_997_995.99, abs=0.01)
    assert found[0] == pytest.approx(0.0311, abs=5e-5)
    at = [model.predict({"N": EP_N["A"], "P": p}) for p in (12, 14, 16)]
    assert [one.mean for one in at] == pytest.approx([5.626, 4.827, 4.228], abs=5e-4)
    assert (at[0].ci, at[0].pi) == pytest.approx((0.054, 0.100), abs=5e-4)


def test_r10_to_r13():
    runs = [({"x": EP_N[c] / 2}, EP[c][2]) for c in "SWA"]
    model, found = coefficients("x", runs)
    assert found == pytest.approx([-0.00528436, 2.50376231e-7], rel=1e-6)
    assert model.predict({"x": EP_N["B"] / 2}).mean == pytest.approx(134.4144, abs=5e-5)
    ft = lambda c, up: [({"N": FT_N[c], "P": p}, FT[c][p]) for p in FT[c] if p <= up]  # noqa: E731
    model, found = coefficients("(N/P)*log2(N)", ft("B", 8))
    assert found == pytest.approx([1.805, 1.00701196e-7], rel=1e-7)
    at = [model.predict({"N": FT_N["B"], "P": p}).mean for p in (16, 32, 64)]
    assert at == pytest.approx([7.0846, 4.4448, 3.1249], abs=5e-5)
    model, found = coefficients("(N/P)*log2(N)", ft("A", 32))
    assert found == pytest.approx([0.3083333333, 1.00200452e-7], rel=1e-7)
    assert model.predict({"N": FT_N["A"], "P": 64}).mean == pytest.approx(0.610403, abs=5e-7)
    model, _ = coefficients("(N/P)*log2(N)", ft("A", 16) + ft("B", 32))
    assert model.predict({"N": FT_N["C"], "P": 16}).mean == pytest.approx(24.218, abs=5e-4)


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.table}: {case.what}")
def test_acceptance_5_r14_to_r16_all_published_predictions(case):
    """Within the specification's tolerance: the tables print two decimals, extrapolation amplifies them."""
    formulas = dict(case.formulas)
    whole = formulas.get("runtime")
    model = Model(
        Application(formula=whole, parts={} if whole else formulas), [Run(p, v) for p, v in case.runs]
    )
    for one in case.predicted:
        found = model.predict(one.point)
        mean = found.parts[one.part].mean if one.part else found.mean
        assert mean == pytest.approx(one.ours, abs=max(0.06, 2e-4 * one.ours))
        if one.published is not None and case.table != "4":
            assert mean == pytest.approx(one.published, abs=max(0.06, 2e-4 * one.published))


def test_r14_to_r16_ranks():
    def of(table, at=0):
        case = [case for case in cases() if case.table == table][at]
        model = Model(Application(formula=case.formulas["runtime"]), [Run(p, v) for p, v in case.runs])
        return model.fits()["runtime"].fit

    assert of("13").rank == 5
    assert of("14", 2).rank == 4
    assert of("15").rank == 5
    assert of("15").r2 == pytest.approx(0.99986, abs=5e-6)


@pytest.mark.parametrize("log", ["log", "log2", "log10"])
def test_r17_the_base_of_a_logarithm_changes_nothing(log):
    runs = [({"N": FT_N[c], "P": p}, FT[c][p]) for c in "AB" for p in (2, 4, 8)]
    model, _ = coefficients(f"(N/P)*{log}(N)", runs)
    assert model.predict({"N": FT_N["C"], "P": 8}).mean == pytest.approx(
        coefficients("(N/P)*log(N)", runs)[0].predict({"N": FT_N["C"], "P": 8}).mean, rel=1e-12
    )


def test_r18_and_r19_the_papers_model_of_class_a():
    n = 2.0**28
    runs = [({"N": n, "P": p}, n / (3_996_971.35 * p) + 0.025) for p in (2, 4, 6, 8, 10)]
    model, _ = coefficients("N/P", runs)
    found = [model.predict({"N": n, "P": p}).mean for p in (1, 2, 4, 8, 16, 32, 64)]
    assert found == pytest.approx([67.1847, 33.6049, 16.8149, 8.4200, 4.2225, 2.1237, 1.0744], abs=1e-4)
    assert all(found[0] / (2**i * t) >= 0.9 for i, t in enumerate(found))
    assert found[0] / (64 * found[6]) == pytest.approx(0.977, abs=5e-4)


def test_r21_the_half_widths_of_parts_add_up():
    case = next(case for case in cases() if case.what == "parts of class B, P 2-16")
    runs = [Run(p, v) for p, v in case.runs]
    found = Model(Application(parts=dict(case.formulas)), runs).predict({"N": FT_N["B"], "P": 32})
    assert found.mean == pytest.approx(sum(p.mean for p in found.parts.values()))
    assert found.ci == pytest.approx(sum(p.ci for p in found.parts.values()))
    assert found.pi == pytest.approx(sum(p.pi for p in found.parts.values()))
    squares = Model(Application(parts=dict(case.formulas), total="root-sum-square"), runs)
    squared = squares.predict({"N": FT_N["B"], "P": 32})
    assert squared.ci == pytest.approx(math.hypot(*(p.ci for p in found.parts.values())))
    assert found.ci >= squared.ci


def test_r22_the_last_column_of_table_10_is_of_computation_and_communication():
    share = [100 * FT_PARTS["comm"][p] / (FT_PARTS["cpu"][p] + FT_PARTS["comm"][p]) for p in FT_SHARE]
    assert share == pytest.approx([16.34, 21.75, 26.11, 36.94, 43.02, 46.70], abs=5e-3)
    assert share == pytest.approx(list(FT_SHARE.values()), abs=0.1)


# ------------------------------------------------------------ what holds of any


def test_acceptance_2_full_rank_fits_agree_with_the_normal_equations():
    draw = np.random.default_rng(1)
    for _ in range(100):
        n, k = int(draw.integers(8, 60)), int(draw.integers(1, 6))
        x = column(draw.uniform(1, 10, (n, k)))
        y = draw.uniform(1, 100, n)
        one = fit(x, y)
        inverse = np.linalg.inv(x.T @ x)
        b = inverse @ x.T @ y
        assert one.coefficients == pytest.approx(b, rel=1e-9, abs=1e-9)
        row = column(draw.uniform(1, 20, (1, k)))
        _, leverage, _ = one.predict(row)
        assert leverage[0] == pytest.approx((row @ inverse @ row.T).item(), rel=1e-9)
        s2 = float(((y - x @ b) ** 2).sum() / (n - k - 1))
        assert one.half_widths(leverage)[1][0] == pytest.approx(
            stats.t.ppf(0.975, n - k - 1) * math.sqrt(s2 * (1 + leverage[0])), rel=1e-9
        )


def test_acceptance_3_whether_a_row_is_estimable_is_right_on_deficient_designs():
    draw = np.random.default_rng(2)
    for _ in range(100):
        n, k = int(draw.integers(8, 30)), int(draw.integers(3, 7))
        full = column(draw.uniform(1, 10, (n, k)))
        # One column follows from two others, in the runs.
        made = full[:, 1:2] * 2 + full[:, 2:3]
        x = np.hstack([full, made])
        y = full @ draw.uniform(0, 5, k + 1)
        one = fit(x, y)
        assert one.rank == k + 1
        new = column(draw.uniform(1, 20, (1, k)))
        inside = np.hstack([new, new[:, 1:2] * 2 + new[:, 2:3]])
        outside = np.hstack([new, new[:, 1:2] * 2.5 + new[:, 2:3]])
        mean, _, estimable = one.predict(np.vstack([inside, outside]))
        assert estimable.tolist() == [True, False]
        assert mean[0] == pytest.approx((new @ np.linalg.lstsq(full, y, rcond=None)[0]).item(), rel=1e-8)


def test_acceptance_7_intervals_cover_what_they_say():
    draw = np.random.default_rng(3)
    x = column(draw.uniform(1, 10, (20, 2)))
    row = np.array([[1.0, 12.0, 3.0]])
    true = np.array([5.0, 2.0, 1.0])
    inside = np.zeros(2)
    for _ in range(2000):
        one = fit(x, x @ true + draw.normal(0, 2, 20))
        mean, leverage, _ = one.predict(row)
        ci, pi = one.half_widths(leverage)
        expected = (row @ true).item()
        inside += (abs(mean[0] - expected) <= ci[0], abs(mean[0] - expected - draw.normal(0, 2)) <= pi[0])
    assert inside / 20 == pytest.approx(95, abs=1.5)


@given(st.integers(0, 10_000))
def test_acceptance_8_order_scale_and_repetition_change_no_prediction(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(6, 15))
    points = [{"N": float(a), "P": float(b)} for a, b in draw.uniform(1, 50, (n, 2))]
    seconds = [10 + 3 * p["N"] / p["P"] + p["N"] + float(draw.normal()) for p in points]

    def at(points, seconds, scale=1.0, times=1):
        runs = [
            Run({"N": p["N"] * scale, "P": p["P"]}, {"runtime": y})
            for p, y in zip(points, seconds, strict=True)
        ]
        model = Model(Application(formula="N/P + N", min_exact=1000), runs * times)
        return model.predict({"N": 60 * scale, "P": 7.0}).mean

    plain = at(points, seconds)
    order = draw.permutation(n)
    assert at([points[i] for i in order], [seconds[i] for i in order]) == pytest.approx(plain, rel=1e-9)
    assert at(points, seconds, scale=1e6) == pytest.approx(plain, rel=1e-9)
    assert at(points, seconds, times=3) == pytest.approx(plain, rel=1e-9)


def test_runs_that_did_not_complete_and_those_without_a_value_do_not_count():
    runs = [Run({"N": n}, {"runtime": 2 * n + 1 + 0.01 * (-1) ** n}) for n in range(1, 8)]
    plain = Model(Application(formula="N + 1/N"), runs).predict({"N": 9})
    more = Model(Application(formula="N + 1/N"), runs)
    for run in (
        Run({"N": 4}, {"runtime": 900}, completed=False),
        Run({"N": 0}, {"runtime": 900}),
        Run({"N": 5}, {}),
        Run({}, {"runtime": 5}),
        Run({"N": math.nan}, {"runtime": 5}),
    ):
        assert not more.add(run)
    assert more.left_out == 5
    assert more.predict({"N": 9}) == plain
    assert "has no value there" in more.predict({"N": 0}).problem
    assert "no run is recorded" in Model(Application(formula="N")).predict({"N": 1}).problem


def test_a_negative_prediction_is_no_runtime_and_far_ones_can_be_left_out():
    runs = [Run({"N": n}, {"runtime": 10.0 - n + 0.01 * (-1) ** n}) for n in range(1, 8)]
    assert "no runtime" in Model(Application(formula="N"), runs).predict({"N": 20}).problem
    near = Model(Application(formula="N", max_leverage=1), runs)
    assert near.predict({"N": 5}).valid
    assert "too far" in near.predict({"N": 9.5}).problem


def test_the_window_of_runs():
    runs = [Run({"N": n}, {"runtime": n * 1.0}, end=n * 86400.0) for n in range(1, 11)]
    assert Model(Application(formula="N", last_runs=4), runs).counted == 4
    assert Model(Application(formula="N", last_days=3), runs).counted == 4


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("applications: {}", "applications: "),
        ("applications: {ft: {formula: N/}}", r"applications.ft.formula: .*column 2"),
        ("applications: {ft: {formulas: N}}", r"unknown key. Did you mean 'formula'"),
        ("applications: {ft: {}}", "either formula or parts, found neither"),
        ("applications: {ft: {formula: N, parts: {a: N}}}", "found both"),
        ("applications: {ft: {formula: N, sizes: {P: nodes}}}", "parameters of the formulas"),
        ("applications: {ft: {formula: N, match: '('}}", "regular expression"),
        ("applications: {'a b': {formula: N}}", "names of letters"),
        ("applications: {ft: {parts: {'a b': N}}}", "names of parts"),
    ],
)
def test_a_file_of_applications_that_is_wrong_names_the_key(text, message):
    with pytest.raises(
        UserError, match=f"site.yaml: .*{message}" if "applications" not in message else message
    ):
        parse_applications(text, "site.yaml")


@pytest.mark.parametrize("words", [{"N": "many"}, {"N": "nan"}, {"N": "1e999"}, {"log": "1"}, {"a b": "1"}])
def test_settings_that_are_no_numbers(words):
    with pytest.raises(UserError, match="--set: expected"):
        parse_settings(words, "--set")
