//! Calls on this machine, whatever RDMA devices it has.

use srdma_verbs::{Device, VerbsError, devices};

/// With libibverbs, which the tests require, there are devices or there is a reason that names the next step.
#[test]
fn devices_are_listed_or_the_reason_is_named() {
    match devices() {
        Ok(names) => assert!(names.iter().all(|name| !name.is_empty()), "{names:?}"),
        Err(error) => {
            assert!(matches!(error, VerbsError::NoRdmaInKernel), "{error}");
            let expected = "the kernel has no RDMA: load its module (modprobe ib_uverbs), or use a kernel that has it";
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[test]
fn a_device_that_does_not_exist_is_an_error() {
    let error = Device::open("srdma-none").expect_err("there is none");
    match devices() {
        Err(_) => assert!(matches!(error, VerbsError::NoRdmaInKernel), "{error}"),
        Ok(names) if names.is_empty() => assert!(matches!(error, VerbsError::NoDevice), "{error}"),
        Ok(names) => {
            assert!(matches!(&error, VerbsError::NoSuchDevice { present, .. } if *present == names), "{error}");
        }
    }
}

#[test]
fn an_address_that_no_device_has_is_an_error() {
    let error = Device::open_by_address("2001:db8:dead:beef::1".parse().unwrap()).expect_err("there is none");
    match devices() {
        Err(_) => assert!(matches!(error, VerbsError::NoRdmaInKernel), "{error}"),
        Ok(names) if names.is_empty() => assert!(matches!(error, VerbsError::NoDevice), "{error}"),
        // A device that this process may not open could have the address.
        Ok(_) => {
            let is_named = matches!(error, VerbsError::NoSuchAddress { .. } | VerbsError::NotPermitted { .. });
            assert!(is_named, "{error}");
        }
    }
}
