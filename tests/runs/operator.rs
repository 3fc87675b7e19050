//! What the Kubeflow Spark Operator makes of the fields that `cloakroom stage --for spark-operator` prints.

use std::path::Path;

use serde_json::Value;

/// As the Kubeflow Spark Operator makes arguments of a `SparkApplication` (its `submission.go`): a template becomes a file,
/// `deps` become options.
pub fn as_the_operator(printed: &str, folder: &Path) -> Vec<String> {
    let fields: Value = serde_saphyr::from_str(printed).unwrap();
    let spec = &fields["spec"];
    let template = folder.join("operators-template.yaml");
    std::fs::write(&template, spec["driver"]["template"].to_string()).unwrap();
    let settings = [
        format!("spark.kubernetes.driver.podTemplateFile={}", template.display()),
        "spark.kubernetes.driver.podTemplateContainerName=spark-kubernetes-driver".to_owned(),
    ];
    let mut arguments: Vec<String> =
        settings.into_iter().flat_map(|setting| ["--conf".to_owned(), setting]).collect();
    for (field, option) in
        [("jars", "--jars"), ("pyFiles", "--py-files"), ("files", "--files"), ("archives", "--archives")]
    {
        let entries: Vec<String> = spec["deps"][field].as_array().into_iter().flatten().map(text).collect();
        if !entries.is_empty() {
            arguments.extend([option.to_owned(), entries.join(",")]);
        }
    }
    arguments.push(text(&spec["mainApplicationFile"]));
    arguments
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
