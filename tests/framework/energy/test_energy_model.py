"""What nodes draw and how fast jobs run, against the figures of Chandio et al. 2014, Tables 7 and 8."""

import pytest
from building import alike, described, node_cluster

from headway.energy import EnergyModel, level_of
from headway.energy.profiles import load_profile, with_energy
from headway.events import NodeUp
from headway.model import ClusterDescription, NodeDescription
from headway.state import State


def paper() -> EnergyModel:
    nodes = (*alike(2, 1, node_class="I"), NodeDescription("m", 1, node_class="III"))
    return EnergyModel(with_energy(node_cluster(*nodes), load_profile("chandio2014")))


def present(processors: int = 128) -> EnergyModel:
    return EnergyModel(with_energy(node_cluster(*alike(2, processors)), load_profile("present-day")))


def test_the_preset_draws_40_w_at_the_full_speed_of_class_one() -> None:
    model = paper()
    assert model.busy_power(model.classes["I"]) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("kind", "energy"), [("I", (1.0 / 1.3) ** 2), ("II", (1.3 / 1.9) ** 2), ("III", (1.9 / 2.5) ** 2)]
)
def test_the_energy_of_a_job_at_the_slowest_level_is_the_square_of_the_voltages(
    kind: str, energy: float
) -> None:
    model = paper()
    node_class = model.classes[kind]
    slowest = node_class.levels[3].frequency
    power = model.busy_power(node_class, slowest) / model.busy_power(node_class)
    time = model.rate(node_class, None) / model.rate(node_class, slowest)
    assert power == pytest.approx(energy * 0.7)
    assert time == pytest.approx(1 / 0.7)
    assert power * time == pytest.approx(energy)


def test_class_one_at_level_three_as_the_dossier_has_it() -> None:
    model = paper()
    kind = model.classes["I"]
    power = model.busy_power(kind, kind.levels[3].frequency) / model.busy_power(kind)
    assert power == pytest.approx(0.4142, abs=5e-5)
    assert power / 0.7 == pytest.approx(0.5917, abs=5e-5)


def test_a_faster_class_does_the_work_of_the_original_machines_sooner() -> None:
    model = paper()
    assert [model.rate(kind, None) for kind in model.profile.classes] == pytest.approx([1.0, 1.2, 4 / 3])


@pytest.mark.parametrize(
    ("asked", "ghz"), [(None, 3.0), (9e9, 3.0), (3.0e9, 3.0), (2.9e9, 2.7), (2.7e9, 2.7), (1e9, 2.1)]
)
def test_a_frequency_means_the_fastest_level_not_above_it_else_the_slowest(
    asked: float | None, ghz: float
) -> None:
    assert level_of(paper().classes["I"], asked).frequency == pytest.approx(ghz * 1e9)


def test_a_job_over_two_classes_goes_as_fast_as_its_slowest_processor() -> None:
    model = paper()
    job = described("1", 2)
    assert model.job_rate(job, (("n0", 1), ("m", 1)), "pool", None) == 1.0
    assert model.job_rate(job, (("m", 1),), "pool", None) == pytest.approx(4 / 3)


def test_a_job_says_how_much_of_its_time_follows_the_clock() -> None:
    model = paper()
    kind = model.classes["I"]
    half = described("1", attributes={"frequency_sensitivity": 0.5})
    none = described("2", attributes={"frequency_sensitivity": 0})
    assert model.stretch(kind, 2.1e9, model.sensitivity(half)) == pytest.approx(0.5 / 0.7 + 0.5)
    assert model.stretch(kind, 2.1e9, model.sensitivity(none)) == 1.0
    assert model.sensitivity(described("3")) == 1.0
    assert model.sensitivity(described("4", attributes={"frequency_sensitivity": "much"})) == 1.0


def test_the_papers_nodes_draw_nothing_when_idle_and_todays_a_third() -> None:
    assert paper().idle_node(NodeDescription("n0", 1)) == 0.0
    model = present()
    node = NodeDescription("n0", 128)
    peak = model.idle_node(node) + model.added_power((("n0", 128),), "pool", 128)
    assert model.idle_node(node) == pytest.approx(222.0)
    assert peak == pytest.approx(734.0)


def test_a_nodes_power_state_says_what_it_draws() -> None:
    model, node = present(), NodeDescription("n0", 128)
    assert model.node_power(node, "asleep") == 15
    assert model.node_power(node, "falling asleep") == pytest.approx(2220 / 10)
    assert model.node_power(node, "waking") == pytest.approx(12000 / 30)
    assert model.node_power(node, "on") == model.idle_node(node)


def test_nodes_are_assigned_to_classes_by_name() -> None:
    nodes = (
        NodeDescription("gpu1", 4),
        NodeDescription("cn1", 4),
        NodeDescription("cn2", 4, node_class="III"),
    )
    cluster = with_energy(node_cluster(*nodes), load_profile("chandio2014"), {"gpu*": "II", "cn*": "I"})
    model = EnergyModel(cluster)
    assert [model.class_of(n.name).name for n in cluster.nodes] == ["II", "I", "III"]
    assert model.class_of("gpu77").name == "II"


def test_a_flat_pool_is_of_one_class() -> None:
    cluster = with_energy(ClusterDescription.flat(8), load_profile("chandio2014"), {"pool": "II"})
    model = EnergyModel(cluster)
    assert model.shares((), "pool", 5) == {"II": 5}


def test_nodes_know_how_long_they_take_to_wake() -> None:
    cluster = with_energy(node_cluster(*alike(1, 8)), load_profile("present-day"))
    assert cluster.nodes[0].wake_time == 30


def test_a_node_that_comes_later_has_the_class_that_it_names_or_that_its_name_says() -> None:
    cluster = with_energy(node_cluster(*alike(1, 8)), load_profile("chandio2014"), {"gpu*": "II"})
    state = State(cluster)
    later = [
        NodeDescription("n7", 8, pools=("pool",), node_class="III"),
        NodeDescription("gpu1", 8, pools=("pool",)),
    ]
    state.apply(NodeUp(1.0, node) for node in later)
    assert state.energy is not None
    assert [state.energy.class_of(node.name).name for node in later] == ["III", "II"]


def test_a_node_that_comes_later_takes_its_classes_time_to_wake() -> None:
    state = State(with_energy(node_cluster(*alike(1, 8)), load_profile("present-day")))
    state.apply([NodeUp(1.0, NodeDescription("n7", 8, pools=("pool",)))])
    assert state.nodes.descriptions["n7"].wake_time == 30
